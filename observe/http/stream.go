package electionhttp

import (
	"errors"
	"net/http"
	"time"
)

const (
	heartbeat = 10 * time.Second // between two signs of life
	patience  = 10 * time.Second // for which a client may take nothing
)

// events answers with server-sent events, until the client goes, or is too slow, or Close is
// called.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	events, leave, err := h.follow()
	if err != nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer leave()
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	w.Header().Set("Connection", "close")     // which has a deadline
	w.WriteHeader(http.StatusOK)
	client := http.NewResponseController(w)
	write := func(text []byte) bool {
		err := client.SetWriteDeadline(time.Now().Add(patience))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		_, err = w.Write(text)
		return err == nil && client.Flush() == nil
	}
	sign := time.NewTicker(heartbeat)
	defer sign.Stop()
	for ok := write([]byte("retry: 2000\n\n")); ok; {
		select {
		case <-r.Context().Done():
			return
		case <-h.ctx.Done():
			return
		case e, open := <-events:
			ok = open && write(e.text)
		case <-sign.C:
			ok = write([]byte(":\n\n"))
		}
	}
}
