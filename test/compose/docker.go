package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// findEngine returns an error that says what is missing, unless a docker engine
// answers.
func findEngine(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not in PATH: install a docker engine (Debian, Ubuntu: apt-get install docker.io)")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := docker(ctx, "version", "--format={{.Server.Version}}"); err != nil {
		return fmt.Errorf("no docker engine answers: %w", err)
	}
	return nil
}

// findCompose returns the command that Compose is called with: what the variable
// COMPOSE says, version 2, or version 1.
func findCompose(ctx context.Context) ([]string, error) {
	if command := strings.Fields(os.Getenv("COMPOSE")); len(command) > 0 {
		return command, nil
	}
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		version := append(command[1:len(command):len(command)], "version")
		if _, err := output(exec.CommandContext(ctx, command[0], version...)); err == nil {
			return command, nil
		}
	}
	return nil, errors.New(`there is neither "docker compose" nor docker-compose: install one ` +
		"(Debian, Ubuntu: apt-get install docker-compose; of Docker's own packages: docker-compose-plugin)")
}

// docker runs the command and returns what it prints.
func docker(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "docker", args...))
}

// output returns what a command prints. Its error is what the command said last.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if said := lastLine(stderr.String()); said != "" {
			return "", errors.New(strings.TrimPrefix(said, "Error response from daemon: "))
		}
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// lastLine returns the last line that says something.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
