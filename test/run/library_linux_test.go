package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// goGet is go for a module that gets those of this checkout as a release will have them.
const goGet = `
go=%s
[ "$1" = get ] || exec $go "$@"
shift
cat %[2]s/examples/go.sum %[2]s/observe/prom/go.sum >go.sum
for m; do
	$go mod edit -replace="$m=%[2]s${m#github.com/electkv/election}" -require="$m@v0.1.0"
done
`

func TestTheLibraryPage(t *testing.T) {
	t.Parallel()
	long(t, "it builds a program with a module of its own")
	s := play(t, "library.md")
	l := newLan(t, map[string]string{"redis-1:6379": testenv.StartRedis(t).Addr()}, "a.example", "b.example", "c.example")
	l.goGets()
	l.requireBeside(s.next("sh"))
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "billing/main.go"), []byte(s.next("go")), 0o600))
	l.requireBeside("cd billing\n" + s.next("sh"))
	start := s.next("sh")
	for _, h := range l.hosts {
		h.runs(start)
	}
	const status = "elect status --store redis://redis-1:6379 billing"
	leader, others := l.leader(status)
	require.Contains(t, s.page.Text, status)
	for _, h := range others {
		_, out := h.says("curl -s -o /dev/null -w %{http_code} http://localhost:8080/election/leader")
		require.Equal(t, "503", out)
	}
	s.console(leader.says)

	leader.runs(s.next("sh"))
	next, _ := l.leader(status)
	require.NotEqual(t, leader.name, next.name)
	ended := leader.eventually("! pgrep -x billing && cat billing.log")
	require.Contains(t, ended, "event=handed_over")
	require.NotContains(t, ended, "exiting", "it was told to stop")

	for _, mistake := range []string{
		"LISTEN=:8081 REDIS_URL=redis-1:6379",
		"LISTEN=:8081 REDIS_URL=redis://redis-1:6380",
		"REDIS_URL=redis://redis-1:6379",
	} {
		next.runs("rm -f mistake.log; " + mistake + " billing >mistake.log 2>&1 &")
		s.told(next.eventually("grep -E 'scheme|request_unclear|in use' mistake.log"))
	}
}
