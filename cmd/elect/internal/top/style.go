package top

import (
	"hash/fnv"

	"github.com/charmbracelet/x/ansi"
)

// palette has the colours of candidates: those of the page, as far as a terminal has them.
// Nothing is told by colour alone.
func palette() []ansi.HexColor {
	return []ansi.HexColor{"#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#f0e442"}
}

// inColour returns signs in the colour of a candidate, which is the same in all elections.
func inColour(id, signs string) string {
	if id == "" {
		return signs
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	all := palette()
	return ansi.NewStyle().ForegroundColor(all[int(h.Sum32())%len(all)]).Styled(signs)
}

// named returns a text about a candidate, behind a sign in its colour.
func named(id, text string) string {
	if id == "" {
		return text
	}
	return inColour(id, "■") + " " + text
}

// The colours of a terminal's own theme can be read on its ground, light or dark.

func alarm(text string) string {
	return ansi.NewStyle().Bold().ForegroundColor(ansi.Red).Styled(text)
}

func soft(text string) string { return ansi.NewStyle().Faint().Styled(text) }

func bold(text string) string { return ansi.NewStyle().Bold().Styled(text) }

func reverse(text string) string { return ansi.NewStyle().Reverse(true).Styled(text) }
