//go:build unix

package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Tab shows a page.
type Tab struct {
	browser *Browser
	target  string
	session string

	mu     sync.Mutex
	loaded bool
	wrongs []string
	cut    bool // a request failed on its way to the server
}

// A Screen is what a page is shown on.
type Screen struct {
	Width, Height int
	Dark          bool // the user prefers dark colours
	Still         bool // and no motion
	Touch         bool
}

// Open opens a page on a screen.
func (b *Browser) Open(url string, screen Screen) *Tab {
	b.t.Helper()
	var target struct{ TargetID, SessionID string }
	b.ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.ask("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	t := &Tab{browser: b, target: target.TargetID, session: target.SessionID}
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		t.Call(domain+".enable", nil, nil)
	}
	t.Show(screen)
	for range loads {
		if t.load(url) {
			return t
		}
	}
	t.browser.must(fmt.Errorf("%s was not loaded in %d attempts: %q", url, loads, t.Wrongs()))
	return nil
}

// loads is how often a page is loaded at most. Chromium gives up a request when an address of
// this machine comes or goes, as other tests have it, and when a server lost its patience with a
// browser that was starved. That says nothing of the page, which lacks its script then.
const loads = 3

// load loads a page, and waits until it is complete. It reports whether no request failed on its
// way to the server.
func (t *Tab) load(url string) bool {
	t.browser.t.Helper()
	t.mu.Lock()
	t.wrongs, t.cut = nil, false
	t.mu.Unlock()
	var navigation struct{ ErrorText string }
	t.Call("Page.navigate", map[string]any{"url": url}, &navigation)
	if navigation.ErrorText != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wrongs = append(t.wrongs, navigation.ErrorText)
		return false
	}
	t.Await("document.readyState === 'complete' && location.href !== 'about:blank'")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = !t.cut
	return t.loaded
}

// Close closes the tab, as a user does.
func (t *Tab) Close() {
	t.browser.t.Helper()
	t.browser.ask("", "Target.closeTarget", map[string]any{"targetId": t.target}, nil)
}

// Show shows the page on another screen.
func (t *Tab) Show(s Screen) {
	t.browser.t.Helper()
	colours, motion := "light", "no-preference"
	if s.Dark {
		colours = "dark"
	}
	if s.Still {
		motion = "reduce"
	}
	t.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Touch}, nil)
	t.Call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": s.Touch}, nil)
	t.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": colours}, {"name": "prefers-reduced-motion", "value": motion},
	}}, nil)
}

// Eval returns the value of an expression in JavaScript. A promise is waited for.
func (t *Tab) Eval(expression string) any {
	t.browser.t.Helper()
	value, err := t.eval(expression)
	t.browser.must(err)
	return value
}

func (t *Tab) eval(expression string) (any, error) {
	text, err := t.browser.call(t.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if wrong := answer.ExceptionDetails; wrong != nil {
		return nil, fmt.Errorf("%s: %s", expression, wrong.Exception.Description)
	}
	return answer.Result.Value, nil
}

// Await waits until an expression in JavaScript is true.
func (t *Tab) Await(expression string) {
	t.browser.t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		value, err := t.eval(expression) // the page may just be changing
		if err == nil && value == true {
			return
		}
		if time.Since(begun) > patience {
			text, _ := t.eval("document.body.innerText")
			t.browser.must(fmt.Errorf("%s is not true after %v, but %v (%v); what went wrong: %q; the page says:\n%v", expression, patience, value, err, t.Wrongs(), text))
		}
	}
}

// Press presses keys, one after the other: a letter or sign, or the name of a key such as Tab.
func (t *Tab) Press(keys ...string) {
	t.browser.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
	for _, key := range keys {
		event := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": codes[key]}
		switch {
		case codes[key] == 0:
			event["text"] = key
		case key == "Enter":
			event["text"] = "\r"
		}
		t.Call("Input.dispatchKeyEvent", event, nil)
		event["type"], event["text"] = "keyUp", ""
		t.Call("Input.dispatchKeyEvent", event, nil)
	}
}

// Point moves the pointer onto the first element that a selector of CSS finds, at its left end.
func (t *Tab) Point(selector string) {
	t.browser.t.Helper()
	at := t.Eval(fmt.Sprintf("(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.left + 2, r.top + r.height / 2]; })()", selector)).([]any)
	t.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at[0], "y": at[1]}, nil)
}

// Screenshot returns a picture of what the screen shows, as PNG.
func (t *Tab) Screenshot() []byte {
	t.browser.t.Helper()
	var shot struct{ Data string }
	t.Call("Page.captureScreenshot", nil, &shot)
	picture, err := base64.StdEncoding.DecodeString(shot.Data)
	t.browser.must(err)
	return picture
}

// Call carries out a command of the developer tools, and puts the result into result, unless
// that is nil.
func (t *Tab) Call(method string, params, result any) {
	t.browser.t.Helper()
	t.browser.ask(t.session, method, params, result)
}

func (b *Browser) ask(session, method string, params, result any) {
	b.t.Helper()
	text, err := b.call(session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	b.must(err)
}

// Wrongs returns what went wrong in the page: exceptions, errors in the console, requests that
// failed, violations of its policy.
func (t *Tab) Wrongs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.wrongs...)
}

func (t *Tab) hear(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Method {
	case "Runtime.exceptionThrown":
		t.wrongs = append(t.wrongs, string(m.Params))
	case "Runtime.consoleAPICalled":
		var call struct{ Type string }
		if json.Unmarshal(m.Params, &call) == nil && (call.Type == "error" || call.Type == "warning") {
			t.wrongs = append(t.wrongs, string(m.Params))
		}
	case "Log.entryAdded":
		var log struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(m.Params, &log) == nil && log.Entry.Level != "verbose" {
			if t.loaded && strings.Contains(log.Entry.Text, "net::ERR_NETWORK_CHANGED") {
				return // an address of this machine came or went, and the page asks again
			}
			t.cut = t.cut || strings.Contains(log.Entry.Text, "net::ERR_")
			t.wrongs = append(t.wrongs, log.Entry.Text+" "+log.Entry.URL)
		}
	}
}

// Requests returns the URLs that the page has loaded, and that of the page.
func (t *Tab) Requests() []string {
	t.browser.t.Helper()
	all := []string{}
	for _, url := range t.Eval("[location.href, ...performance.getEntriesByType('resource').map(e => e.name)]").([]any) {
		all = append(all, url.(string))
	}
	return all
}
