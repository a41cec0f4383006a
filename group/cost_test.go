package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatGroupsCost prints what docs/groups.md says that groups cost, in messages and in time.
func TestWhatGroupsCost(t *testing.T) {
	for _, size := range []int{3, 5, 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			fake(t, size, func(c *cluster) {
				part := size/2 + 1
				all, larger, smaller := c.opts.Peers, c.opts.Peers[:part], c.opts.Peers[part:]
				c.startAll()
				said := ""
				tell := func(what string, f func()) {
					began, sent := time.Now(), c.net.total()
					f()
					said += fmt.Sprintf(" | %s: %d messages, %v", what, c.net.total()-sent, time.Since(began).Round(100*time.Millisecond))
				}
				tell("all start", func() { c.merges(c.opts.Merged(), all...) })
				time.Sleep(time.Minute)
				sent := c.net.messages(time.Minute) / 60
				require.Equal(c, 2*(size-1), sent)
				said += fmt.Sprintf(" | a second: %d messages", sent)

				c.net.lose(parts(smaller))
				tell("the network parts", func() { c.merges(c.opts.Merged(), larger...); c.merges(c.opts.Merged(), smaller...) })
				time.Sleep(time.Minute)
				sent = c.net.messages(time.Hour) / 3600
				said += fmt.Sprintf(" | a second while it is parted: %d messages", sent)
				require.LessOrEqual(c, sent, 2*(size-2)+size)
				c.net.lose(nil)
				tell("it is whole", func() { c.merges(c.opts.Merged(), all...) })
				time.Sleep(time.Minute)
				c.crash(c.group(all[0]).Leader)
				tell("the leader crashes", func() { c.merges(c.opts.Merged(), all[1:]...) })
				c.Logf("n = %d%s", size, said)
			})
		})
	}
}
