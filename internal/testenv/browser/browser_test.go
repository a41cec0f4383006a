//go:build unix

package browser_test

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/internal/testenv/browser"
)

func TestMain(m *testing.M) { leak.Main(m) }

const page = `data:text/html,<title>t</title><button onclick="this.textContent='pressed'" onpointerenter="document.title='met'">b</button>`

func TestABrowserDoesWhatAUserDoes(t *testing.T) {
	tab := browser.Start(t).Open(page, browser.Screen{Width: 500, Height: 300})
	require.Equal(t, "t", tab.Eval("document.title"))
	tab.Press("Tab", "Enter")
	tab.Await("document.querySelector('button').textContent === 'pressed'")
	tab.Point("button")
	tab.Await("document.title === 'met'")
	require.EqualValues(t, 42, tab.Eval("new Promise(done => setTimeout(() => done(42), 10))"))

	tab.Show(browser.Screen{Width: 320, Height: 200, Dark: true, Still: true})
	tab.Await("innerWidth === 320 && matchMedia('(prefers-color-scheme: dark) and (prefers-reduced-motion: reduce)').matches")
	picture, err := png.Decode(bytes.NewReader(tab.Screenshot()))
	require.NoError(t, err)
	require.Equal(t, 320, picture.Bounds().Dx())
	require.Empty(t, tab.Wrongs())
}

func TestABrowserTellsWhatGoesWrongInAPage(t *testing.T) {
	tab := browser.Start(t).Open(page, browser.Screen{Width: 500, Height: 300})
	tab.Eval("console.error('alas')")
	tab.Eval("setTimeout(() => { throw new Error('oh dear') })")
	tab.Await("true")
	require.Eventually(t, func() bool { return len(tab.Wrongs()) == 2 }, 30*time.Second, 10*time.Millisecond, "%v", tab.Wrongs())
	require.Contains(t, tab.Wrongs()[0], "alas")
	require.Contains(t, tab.Wrongs()[1], "oh dear")
}

func TestAPageIsLoadedAgainIfTheServerDroppedARequestOfIt(t *testing.T) {
	var dropped atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/page.js":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<title>t</title><link rel="icon" href="data:,"><script src="/page.js"></script>`)
		case !dropped.Swap(true):
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, "document.title = 'loaded'")
		}
	}))
	defer server.Close()
	server.Config.SetKeepAlivesEnabled(false) // a request on a connection that was used is sent again
	tab := browser.Start(t).Open(server.URL, browser.Screen{Width: 500, Height: 300})
	require.True(t, dropped.Load())
	require.Equal(t, "loaded", tab.Eval("document.title"))
	require.Empty(t, tab.Wrongs())
}
