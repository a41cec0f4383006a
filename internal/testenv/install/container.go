package install

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// A Container is a server that docker runs. It stays, for the next run; "docker
// rm -f" with its name ends it.
type Container struct {
	name    string
	image   string
	port    string
	options []string // of docker run
	command []string // to the image
}

// What runs in a container where there is no package of it: the official images,
// with as little of a password as testenv's own servers have.
var (
	RedisContainer = Container{"election-test-redis", "redis:7.4-alpine", "6379/tcp",
		nil, []string{"redis-server", "--save", ""}}
	PostgresContainer = Container{"election-test-postgres", "postgres:17-alpine", "5432/tcp",
		[]string{"--env", "POSTGRES_HOST_AUTH_METHOD=trust"}, []string{"-c", "fsync=off", "-c", "max_connections=300"}}
	MariaDBContainer = Container{"election-test-mariadb", "mariadb:11.4", "3306/tcp",
		[]string{"--env", "MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1"}, nil}
)

// HasDocker reports whether a docker engine answers.
func HasDocker(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// Run starts the container, unless it runs already, and returns its address as
// host:port. The server in it may take a while to answer.
func (c Container) Run(ctx context.Context, log io.Writer) (string, error) {
	if addr, err := c.addr(ctx); err == nil {
		return addr, nil
	}
	args := append([]string{"run", "--detach", "--rm", "--name", c.name, "--publish", "127.0.0.1::" + c.port}, c.options...)
	args = append(append(args, c.image), c.command...)
	if err := run(ctx, log, "docker", args...); err != nil {
		return "", fmt.Errorf("install: %s in docker: %w", c.image, err)
	}
	addr, err := c.addr(ctx)
	if err != nil {
		return "", fmt.Errorf("install: %s in docker: %w", c.image, err)
	}
	return addr, nil
}

// addr returns the address under which the container is to be reached.
func (c Container) addr(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "port", c.name, c.port).Output()
	if err != nil {
		return "", fmt.Errorf("docker port %s: %w", c.name, err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if addr == "" {
		return "", fmt.Errorf("docker port %s: no port is published", c.name)
	}
	return addr, nil
}
