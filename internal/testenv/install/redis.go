package install

import "errors"

// ErrNoRedis means that this machine has no redis-server. Its text says how to
// come by one.
var ErrNoRedis = errors.New("redis-server is not in PATH: install it " +
	"(Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install redis) " +
	"or set ELECTION_TEST_REDIS=host:port to a server that runs")

// Redis returns the path of redis-server, or ErrNoRedis.
func Redis() (string, error) {
	return lookFor(ErrNoRedis, "redis-server")
}
