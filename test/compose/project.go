package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// projectName is what the containers have in common, whatever the folder is
// called that the repository is in.
const projectName = "election"

// A project is the servers of docker-compose.yml, in containers.
type project struct {
	file    *file
	compose []string // the command
	log     io.Writer
}

func openProject(ctx context.Context, log io.Writer) (*project, error) {
	f, err := readFile()
	if err != nil {
		return nil, err
	}
	if err := findEngine(ctx); err != nil {
		return nil, err
	}
	compose, err := findCompose(ctx)
	if err != nil {
		return nil, err
	}
	return &project{f, compose, log}, nil
}

// up starts the services of a profile, and waits until they are healthy.
func (p *project) up(ctx context.Context, profile string) error {
	if err := provide(ctx, p.log, p.file.images(profile), false); err != nil {
		return err
	}
	if err := p.portsFree(ctx, profile); err != nil {
		return err
	}
	if err := p.call(ctx, "--profile", profile, "up", "--detach"); err != nil {
		return err
	}
	return p.awaitHealthy(ctx, p.file.names(profile))
}

// down stops and removes all containers, and what they hold.
func (p *project) down(ctx context.Context) error {
	failed := p.call(ctx, "--profile", "cluster", "down", "--timeout=2", "--volumes", "--remove-orphans")
	if failed == nil {
		return nil
	}
	left, err := docker(ctx, "ps", "--all", "--quiet", "--filter=label=com.docker.compose.project="+projectName)
	if err != nil || left != "" {
		return errors.Join(failed, err)
	}
	if err := p.removeNetwork(ctx); err != nil {
		return fmt.Errorf("%w; %w", failed, err)
	}
	return nil
}

// call calls Compose, which tells how it goes on.
func (p *project) call(ctx context.Context, args ...string) error {
	args = append(append(p.compose[1:len(p.compose):len(p.compose)], "--project-name", projectName), args...)
	cmd := exec.CommandContext(ctx, p.compose[0], args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", p.compose[0], strings.Join(args, " "), err)
	}
	return nil
}

// portsFree returns an error that names what listens already where services are
// to, unless it is these services themselves.
func (p *project) portsFree(ctx context.Context, profile string) error {
	own, err := docker(ctx, "ps", "--filter=label=com.docker.compose.project="+projectName,
		`--format={{.Label "com.docker.compose.service"}}`)
	if err != nil {
		return err
	}
	var taken []string
	for _, name := range p.file.names(profile) {
		if slices.Contains(strings.Fields(own), name) {
			continue
		}
		for _, address := range p.file.Services[name].addresses() {
			if !isFree(ctx, address) {
				taken = append(taken, address+" for "+name)
			}
		}
	}
	if len(taken) > 0 {
		return fmt.Errorf("these addresses are in use: %s; stop what listens there", strings.Join(taken, ", "))
	}
	return nil
}

func isFree(ctx context.Context, address string) bool {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	return err == nil && listener.Close() == nil
}

// patience is how long servers may take until they are healthy.
const patience = 3 * time.Minute

// awaitHealthy waits until services are healthy, or fails as soon as one has ended.
func (p *project) awaitHealthy(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not healthy within %v", patience))
	defer cancel()
	for _, name := range names {
		if err := p.awaitService(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Fprintln(p.log, "healthy:", strings.Join(names, " "))
	return nil
}

func (p *project) awaitService(ctx context.Context, name string) error {
	id, err := p.container(ctx, name)
	if err != nil {
		return err
	}
	for {
		state, err := docker(ctx, "inspect", "--format={{.State.Status}} {{if .State.Health}}{{.State.Health.Status}}{{end}}", id)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: it is %s", context.Cause(ctx), state)
		case err != nil:
			return err
		case state == "running healthy", state == "running": // or there is no check
			return nil
		case strings.HasPrefix(state, "exited"), strings.HasPrefix(state, "dead"):
			return fmt.Errorf("it has ended; it said last: %s", p.lastWords(ctx, id))
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return fmt.Errorf("%w: it is %s", context.Cause(ctx), state)
		}
	}
}

// lastWords returns the last line of a container's log.
func (*project) lastWords(ctx context.Context, id string) string {
	out, err := exec.CommandContext(ctx, "docker", "logs", "--tail=1", id).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return lastLine(string(out))
}

// container returns the container of a service.
func (*project) container(ctx context.Context, name string) (string, error) {
	id, err := docker(ctx, "ps", "--all", "--quiet", "--filter=label=com.docker.compose.project="+projectName,
		"--filter=label=com.docker.compose.service="+name)
	if err == nil && id == "" {
		err = errors.New(`it has no container: start it with "make cluster"`)
	}
	return id, err
}

// sleep returns whether it slept for so long; it does not if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
