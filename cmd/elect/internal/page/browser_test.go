//go:build unix

package page_test

import (
	"bytes"
	"fmt"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/testenv/browser"
)

var desk = browser.Screen{Width: 1280, Height: 800}

// requireFine wants a page to have done nothing wrong, and to have asked nobody but its server.
func (s *scene) requireFine(tab *browser.Tab) {
	s.t.Helper()
	require.Empty(s.t, tab.Wrongs())
	for _, url := range tab.Requests() {
		require.True(s.t, strings.HasPrefix(url, s.url()+"/"), url)
	}
}

// bars returns the looks of what is drawn on the timeline of the n-th election.
func bars(tab *browser.Tab, n int) string {
	return fmt.Sprint(tab.Eval(fmt.Sprintf("[...document.querySelectorAll('.election')[%d].querySelector('.lane').querySelectorAll('.bar')].map(b => b.className.replace(/ (narrow|found|heired|p\\d)/g, '')).join('; ')", n)))
}

func says(text string) string {
	return fmt.Sprintf("document.querySelector('#list').innerText.includes(%q)", text)
}

func TestABrowserShowsEachChangeWhileItHappens(t *testing.T) {
	s := open(t, "billing", "nightly")
	s.empty("billing")
	s.empty("nightly")
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await("document.querySelectorAll('.election').length === 2")
	tab.Await("document.querySelector('#link').textContent === 'live'")
	tab.Await("document.title === '2 without a leader – Elections'")
	require.Equal(t, "bar vacant", bars(tab, 0))

	first := s.elects("billing", "anna")
	tab.Await(says("anna leads"))
	heir := s.elects("billing:heir", "ben")
	tab.Await(says("heir ben"))
	second := s.handsOver("billing", first, heir)
	tab.Await(says("ben leads"))
	require.Equal(t, "bar vacant; bar c0 passes; bar c1", bars(tab, 0))

	s.elects("billing:heir", "cleo")
	tab.Await(says("heir cleo"))
	s.loses("billing", second)
	tab.Await("document.querySelectorAll('.alarm.election').length === 2")
	s.elects("billing", "dora")
	tab.Await(says("dora leads"))
	require.Equal(t, "bar vacant; bar c0 passes; bar c1 lost; bar vacant; bar c3", bars(tab, 0))
	require.Equal(t, "bar vacant", bars(tab, 1))
	tab.Await("document.title === '1 without a leader – Elections'")
	tab.Await("document.querySelector('#news').textContent.includes('dora leads billing')")

	lefts := tab.Eval("[...document.querySelectorAll('.lane .bar')].slice(0, 5).map(b => b.getBoundingClientRect()).map(r => [r.left, r.right])").([]any)
	for i := range lefts[1:] {
		require.InDelta(t, lefts[i].([]any)[1], lefts[i+1].([]any)[0], 8, "the bars join: %v", lefts)
	}
	s.requireFine(tab)
}

func TestTheTimelineBeginsWithWhatTheLeaderTellsOfThoseBefore(t *testing.T) {
	s := open(t)
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
	rec := s.record("cleo", "")
	rec.Note = machine.Note{Since: ago(3 * time.Second), Past: machine.Past{
		{ID: "anna", Token: 1, Began: ago(12 * time.Second), Ended: ago(10 * time.Second), Why: machine.LetterOf("asked"), HandedOver: true},
		{ID: "ben", Token: 2, Began: ago(10 * time.Second), Ended: ago(6 * time.Second), Why: machine.Gone},
	}.Text()}.Text()
	_, err := s.store.Create(t.Context(), "job", rec)
	require.NoError(t, err)
	s.story.Follow("job")
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("cleo leads for about"))
	tab.Await(says("handed over to ben, its heir, without a gap: it was asked to resign"))
	tab.Await(says("given up or lost: it did not hand over; nobody led for "))
	require.Regexp(t, "^bar c[0-2] passes; bar c[0-2]; bar vacant; bar c[0-2]$", bars(tab, 0))
	require.Contains(t, tab.Eval("document.querySelector('.lane [role=img]').getAttribute('aria-label')"), "about from")
	s.requireFine(tab)
}

func TestABrowserComesBackWhenItsServerDoes(t *testing.T) {
	s := open(t, "job")
	s.elects("job", "anna")
	s.led("job", "anna")
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("anna leads"))
	s.leave()
	tab.Await("document.querySelector('#link').dataset.link === 'broken'")
	require.Contains(t, tab.Eval("document.querySelector('#link').textContent"), "no connection since")
	age := "document.querySelector('.facts').textContent"
	before := tab.Eval(age)
	time.Sleep(1500 * time.Millisecond)
	require.Equal(t, before, tab.Eval(age), "what is not known does not go on")
	s.serve()
	tab.Await("document.querySelector('#link').dataset.link === 'live'")
	tab.Await(says("anna leads"))
}

// A writer of the store must have no power over the browsers that show it.
func TestWhatComesFromAStoreIsShownAsText(t *testing.T) {
	const evil = `<img src=x onerror="document.title='evil'"><script>document.title='evil'</script>"'&<b>`
	s := open(t, "job "+evil, "foreign")
	rec, err := s.store.Create(t.Context(), "job "+evil, s.record("id "+evil, "value "+evil))
	require.NoError(t, err)
	_, err = s.store.Create(t.Context(), "job "+evil+":heir", s.record("heir "+evil, "\u202e\x00\xff"+strings.Repeat("x", 100_000)))
	require.NoError(t, err)
	s.led("job "+evil, "id "+evil)
	s.story.Mark("job "+evil, chronicle.Mark{At: s.story.Since(), Who: "who " + evil, What: "what " + evil, Sign: "K"})
	s.story.SetCandidates("job "+evil, []chronicle.Candidate{
		{ID: "who " + evil, State: "state " + evil}, {Foreign: true, Value: "foreign " + evil},
		{ID: "many " + evil, Value: "\u202e\x00\xff" + strings.Repeat("x", 100_000), Rank: -1 << 62, Since: time.Now().AddDate(-300, 0, 0)},
	})

	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("job " + evil))
	tab.Eval("document.querySelectorAll('.title button')[1].click()")
	for _, text := range []string{"id " + evil, "heir " + evil, "who " + evil, "state " + evil, "foreign " + evil[:40], "many " + evil} {
		tab.Await(says(text))
	}
	const bar = ".election:nth-child(2) .bar:not(.vacant)" // nobody led before, if that was seen
	tab.Await(fmt.Sprintf("(b => { const r = b.getBoundingClientRect(); return b.contains(document.elementFromPoint(r.left + 2, r.top + r.height / 2)); })(document.querySelector(%q))", bar))
	tab.Point(bar)
	tab.Await(fmt.Sprintf("document.querySelector('#tip').textContent.includes(%q)", "value "+evil[:40]))
	require.EqualValues(t, 0, tab.Eval("document.querySelectorAll('img, b > b, #list script').length"))
	s.loses("job "+evil, rec)
	tab.Await(says("nobody leads"))
	require.NotContains(t, tab.Eval("document.title"), "evil")
	s.requireFine(tab)
}

func TestThePolicyLetsNoScriptIn(t *testing.T) {
	s := open(t, "job")
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await("document.querySelector('#link').textContent === 'live'")
	for _, attempt := range []string{
		"document.body.innerHTML = '<p>markup</p>'",
		"document.body.append(Object.assign(document.createElement('script'), {src: 'data:text/javascript,document.title=1'}))",
		"fetch('http://127.0.0.2:1/')",
	} {
		got := tab.Eval(fmt.Sprintf("(async () => { try { await (%s); return document.title } catch (e) { return 'refused' } })()", attempt))
		require.Equal(t, "refused", got, attempt)
	}
	require.NotEmpty(t, tab.Wrongs())
}

func TestThePageIsUsedByTheKeyboard(t *testing.T) {
	s := open(t, "a", "b")
	s.empty("a")
	s.empty("b")
	first := s.elects("b", "anna")
	s.led("b", "anna")
	s.loses("b", first)
	s.empty("b")
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await("document.querySelectorAll('.election').length === 2")
	focus := func(want string) {
		t.Helper()
		tab.Await(fmt.Sprintf("(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).includes(%q)", want))
	}
	tab.Press("Tab")
	focus("Skip to the elections")
	tab.Press("j", "j", "k", "j")
	focus("b")
	tab.Press("Enter")
	tab.Await("document.activeElement.getAttribute('aria-expanded') === 'true'")
	require.Equal(t, "Candidate Token Began Lasted How it ended", tab.Eval("[...document.querySelectorAll('th')].map(h => h.textContent).join(' ')"))
	tab.Press("Tab")
	focus("nobody leads, from")
	tab.Press("ArrowLeft")
	focus("anna led, from")
	tab.Await("document.querySelector('#tip').textContent.includes('token')")
	s.elects("b", "ben")
	tab.Await(says("ben leads"))
	focus("anna led, from") // it stays where it is
	tab.Press("Home")
	focus("nobody leads, at least from")
	tab.Press("ArrowLeft", "End", "ArrowRight")
	focus("ben leads, from")
	tab.Press("Escape")
	require.Equal(t, true, tab.Eval("document.querySelector('#tip').hidden"))

	tab.Press("/", "b")
	tab.Await("document.querySelectorAll('.election').length === 1")
	require.Equal(t, "b", tab.Eval("document.querySelector('.title button').textContent"))
	tab.Press("Escape", "j", "Enter")
	tab.Await("document.querySelector('.title button').getAttribute('aria-expanded') === 'false'")
	s.requireFine(tab)
}

// The accessibility tree is what a screen reader reads.
func TestEverythingThatCanBeReachedHasAName(t *testing.T) {
	s := open(t, "job")
	s.elects("job", "anna")
	s.elects("job:heir", "ben")
	s.led("job", "anna")
	s.story.SetCandidates("job", []chronicle.Candidate{{ID: "anna", Value: "here"}, {ID: "cleo", Rank: 7, Since: time.Now()}, {Foreign: true}})
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("heir ben"))
	tab.Await(says("Terms, newest first"))
	tab.Await("document.querySelectorAll('[role=listitem]').length === 4")
	require.Equal(t, "Candidates of job", tab.Eval("document.querySelector('[role=listitem]').closest('[role=list]').getAttribute('aria-label')"))
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			Properties []struct {
				Name  string
				Value struct{ Value any }
			}
		}
	}
	tab.Call("Accessibility.getFullAXTree", nil, &tree)
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		role := fmt.Sprint(n.Role.Value)
		roles[role]++
		for _, p := range n.Properties {
			if p.Name == "focusable" && p.Value.Value == true && !n.Ignored && role != "main" {
				require.NotEmpty(t, n.Name.Value, "%+v", n)
			}
		}
	}
	for _, role := range []string{"main", "banner", "contentinfo", "heading", "article", "table", "columnheader", "radio", "status", "image", "list", "listitem"} {
		require.NotZero(t, roles[role], "%s: %v", role, roles)
	}
	require.Equal(t, "en", tab.Eval("document.documentElement.lang"))
}

func TestThePageFitsAPhone(t *testing.T) {
	long := strings.Repeat("a-long-name/", 20)
	s := open(t, long, "job")
	s.elects(long, strings.Repeat("candidate", 30))
	s.led(long, strings.Repeat("candidate", 30))
	s.elects(long+":heir", strings.Repeat("W", 200))
	s.empty("job")
	s.story.SetCandidates(long, []chronicle.Candidate{
		{ID: strings.Repeat("candidate", 30), Value: strings.Repeat("value", 100), Since: time.Now()}, {ID: "ben", Rank: 1 << 62}, {Foreign: true, Value: strings.Repeat("W", 300)},
	})
	tab := browser.Start(t).Open(s.url(), browser.Screen{Width: 360, Height: 740, Touch: true})
	tab.Await("document.querySelectorAll('.election').length === 2")
	tab.Eval("document.querySelectorAll('.title button').forEach(b => b.click())")
	tab.Await(says("Terms, newest first"))
	tab.Await(says("a foreign record"))
	require.EqualValues(t, 360, tab.Eval("document.documentElement.scrollWidth"))
	require.EqualValues(t, 0, tab.Eval("[...document.querySelectorAll('body *')].filter(e => !e.closest('.lane, .unseen, .skip, #axis, #tip, .scroll, fieldset legend') && e.getBoundingClientRect().right > 361).length"))
	smallest := tab.Eval("Math.min(...[...document.querySelectorAll('button, #window label, input[type=search]')].filter(e => e.offsetHeight).map(e => e.getBoundingClientRect().height))")
	require.GreaterOrEqual(t, smallest, 24.0, "a finger finds it")
	s.requireFine(tab)
}

func TestThePageIsLightOrDarkAsItsReaderIs(t *testing.T) {
	s := open(t, "job")
	s.empty("job")
	s.story.SetCandidates("job", []chronicle.Candidate{{ID: "anna", Rank: 7, State: "killed"}, {ID: "ben"}})
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await("document.querySelectorAll('.who').length === 2")
	corner := func(screen browser.Screen) uint32 {
		tab.Show(screen)
		tab.Await(fmt.Sprintf("matchMedia('(prefers-color-scheme: dark)').matches === %v", screen.Dark))
		picture, err := png.Decode(bytes.NewReader(tab.Screenshot()))
		require.NoError(t, err)
		red, _, _, _ := picture.At(2, 2).RGBA()
		return red >> 8
	}
	require.Greater(t, corner(desk), uint32(230))
	require.Less(t, corner(browser.Screen{Width: 1280, Height: 800, Dark: true}), uint32(40))
	for _, dark := range []bool{false, true} {
		tab.Show(browser.Screen{Width: 1280, Height: 800, Dark: dark})
		for _, selector := range []string{".facts", ".facts .bad", ".badge.vacant", "#axis span", "footer", "#store", ".title button", ".more h3", ".who b", ".who .killed", ".row:last-child .who span", "[role=listitem] .facts"} {
			require.GreaterOrEqual(t, contrast(tab, selector), 4.5, "%s, dark: %v", selector, dark)
		}
	}
}

// contrast returns that of a text with what is behind it, as WCAG 2 defines it.
func contrast(tab *browser.Tab, selector string) float64 {
	return tab.Eval(fmt.Sprintf(`(() => {
		const rgb = c => c.match(/[\d.]+/g).map(Number);
		const light = c => { const [r, g, b] = rgb(c).slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
		const element = document.querySelector(%q);
		let behind = element;
		while (rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
		const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)].sort((x, y) => y - x);
		return (a + .05) / (b + .05);
	})()`, selector)).(float64)
}

func TestNothingMovesForThoseWhoWantNoMotion(t *testing.T) {
	s := open(t, "job")
	s.empty("job")
	b := browser.Start(t)
	// A step comes soon after the one before. A page that does not glide has one in a second.
	steps := func(still bool) float64 {
		tab := b.Open(s.url(), browser.Screen{Width: 1280, Height: 800, Still: still})
		tab.Await("document.querySelectorAll('.election').length === 1")
		tab.Eval("document.querySelector('#window input').click()") // the shortest, in which it is fastest
		return tab.Eval(fmt.Sprintf(`new Promise(done => {
			const begun = performance.now();
			let before = '', moved = begun, steps = 0;
			const look = () => {
				const now = performance.now();
				const view = document.documentElement.style.getPropertyValue('--view');
				if (view !== before) {
					if (now < moved + 500) steps++;
					before = view;
					moved = now;
				}
				const enough = now > begun + 50000 || (%v ? now > begun + 3000 : steps > 12);
				enough ? done(steps) : requestAnimationFrame(look);
			};
			look();
		})`, still)).(float64)
	}
	require.Less(t, steps(true), 6.0)
	require.Greater(t, steps(false), 12.0)
}

func TestAThousandElectionsAreDrawnAsTheyAreAskedFor(t *testing.T) {
	names := []string{}
	for i := range 1000 {
		names = append(names, fmt.Sprintf("job-%04d", i))
	}
	s := open(t, names...)
	for _, name := range names[:500] {
		s.elects(name, "anna")
	}
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await("document.querySelector('#tiles').textContent.includes('500 without a leader')")
	require.EqualValues(t, 200, tab.Eval("document.querySelectorAll('.election').length"))
	tab.Eval("document.querySelector('#tiles [data-filter=vacant]').click()")
	tab.Await("document.querySelector('.title button').textContent === 'job-0500'")
	tab.Eval("document.querySelector('#empty button').click()")
	tab.Await("document.querySelectorAll('.election').length === 500")
	s.requireFine(tab)
}
