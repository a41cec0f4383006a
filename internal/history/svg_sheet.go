package history

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// letterWidth is that of a text's letter, about and at most.
const letterWidth = 7

// A sheet takes the lines, shapes and texts of a picture. What is drawn later
// lies above. The classes are those of the style.
type sheet struct {
	body bytes.Buffer
	used map[string]bool // the classes, for the legend
}

func newSheet() sheet { return sheet{used: map[string]bool{}} }

// sign draws a signal, if it is one: a cross, two bars, a triangle.
func (s *sheet) sign(kind Kind, x, y float64, told string) {
	path, ok := map[Kind]string{
		Killed:  "M-4 -4L4 4M4 -4L-4 4",
		Stopped: "M-2.5 -4V4M2.5 -4V4",
		Woken:   "M-2.5 -4.5L4 0L-2.5 4.5Z",
	}[kind]
	if !ok {
		return
	}
	s.used[string(kind)] = true
	fmt.Fprintf(&s.body, `<g transform="translate(%.1f %.1f)"><title>%s</title><circle class="disc" r="8"/><path class="%s" d="%s"/></g>`+"\n", x, y, escape(told), kind, path)
}

func (s *sheet) line(class string, x1, y1, x2, y2 float64) {
	s.used[class] = true
	fmt.Fprintf(&s.body, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

// rect draws a rectangle, and tells what it is when it is pointed at.
func (s *sheet) rect(class string, x, y, width, height float64, told string) {
	s.used[class] = true
	fmt.Fprintf(&s.body, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3"><title>%s</title></rect>`+"\n", class, x, y, width, height, escape(told))
}

func (s *sheet) text(x, y float64, class, text string) {
	fmt.Fprintf(&s.body, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, escape(text))
}

// write writes the whole document. The picture has a ground of its own: a page
// may be dark on a light system.
func (s *sheet) write(w io.Writer, title string, height float64) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %.0[2]f" width="%[1]d" height="%.0[2]f" role="img" aria-label="%[3]s">
<title>%[3]s</title>
<style>
%[4]s</style>
<defs><pattern id="sleep" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="stripe" y2="6"/></pattern></defs>
<rect class="ground" x="0.5" y="0.5" width="%[5]d" height="%.0[6]f" rx="8"/>
<text class="title" x="%[7]d" y="34">%[3]s</text>
%[8]s</svg>
`, pictureWidth, height, escape(title), style, pictureWidth-1, height-1, margin, s.body.String())
	return err
}

// The colours of candidates' bars are c0 to c4.
const (
	colours = 5
	style   = `text{font:12px sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:bold}
.strong{font-weight:bold}
.small{font-size:11px;fill:#59636e}
.middle{text-anchor:middle}
.on{fill:#fff;font-size:11px}
.ground{fill:#fff;stroke:#d1d9e0}
.waits{stroke:#818b98;stroke-width:2;stroke-dasharray:2 5}
.c0{fill:#0969da}.c1{fill:#1a7f37}.c2{fill:#8250df}.c3{fill:#0b7285}.c4{fill:#bf3989}
.asleep{fill:url(#sleep);stroke:#818b98}
.stripe{stroke:#818b98;stroke-width:2}
.trust{stroke:#1f2328;stroke-width:1.5;stroke-dasharray:3 2}
.due{stroke:#1a7f37;stroke-width:1.5}
.disc{fill:#fff;stroke:#1f2328}
.killed,.stopped{stroke:#1f2328;stroke-width:2;fill:none}
.killed{stroke:#cf222e}
.woken{fill:#1f2328}
.fault{fill:#fb8f44;fill-opacity:.18}
.spot{fill:#bc4c00}
.when{stroke:#bc4c00;stroke-dasharray:4 3}
.axis{stroke:#59636e}.rule,.grid{stroke:#818b98;stroke-opacity:.25}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.small{fill:#9198a1}.on{fill:#fff}
.ground{fill:#0d1117;stroke:#3d444d}
.disc{fill:#0d1117;stroke:#f0f6fc}
.trust,.stopped{stroke:#f0f6fc}.killed{stroke:#ff7b72}.woken{fill:#f0f6fc}
.due{stroke:#3fb950}.when{stroke:#f0883e}.axis{stroke:#9198a1}
}
`
)

// escape returns a text as it stands in XML, also between quotation marks.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

// shorten cuts a text that has more than n letters.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// wrap breaks a text between its words, at n letters.
func wrap(text string, n int) []string {
	lines := []string{}
	for text != "" {
		runes := []rune(text)
		if len(runes) <= n {
			return append(lines, text)
		}
		end := n
		if i := strings.LastIndexByte(string(runes[:n+1]), ' '); i > 0 {
			end = utf8.RuneCountInString(string(runes[:n+1])[:i])
		}
		lines = append(lines, strings.TrimRight(string(runes[:end]), " "))
		text = strings.TrimLeft(string(runes[end:]), " ")
	}
	return lines
}
