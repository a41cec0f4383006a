//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// A namespace is a network namespace of Linux. It lives as long as a process in
// it: the one that only holds it, which the guard ends, and any other.
type namespace struct {
	holder *exec.Cmd
	pipe   io.Closer // the holder ends with it
}

func newNamespace() (*namespace, error) {
	g, err := theGuard()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("unshare", "--net", "sh", "-c", "echo made && exec cat")
	cmd.SysProcAttr = g.attributes()
	var trouble strings.Builder
	cmd.Stderr = &trouble
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n := &namespace{holder: cmd, pipe: pipe}
	if _, err := io.ReadFull(out, make([]byte, len("made\n"))); err != nil {
		n.close()
		return nil, fmt.Errorf("network: %s: %w", strings.TrimSpace(trouble.String()), err)
	}
	return n, nil
}

// close ends the holder.
func (n *namespace) close() {
	n.pipe.Close()
	_ = n.holder.Wait() // its error says how it ended
}

// pid is that of the holder, and so a name of the namespace.
func (n *namespace) pid() int { return n.holder.Process.Pid }

// enter makes the command run in the namespace.
func (n *namespace) enter(cmd *exec.Cmd) error {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	args := []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", n.pid()), "--", cmd.Path}
	cmd.Args = append(args, cmd.Args[1:]...)
	cmd.Path = nsenter
	return nil
}

// run carries out a command in the namespace.
func (n *namespace) run(input, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if err := n.enter(cmd); err != nil {
		return err
	}
	return runCommand(cmd, input)
}

// set turns settings of the namespace's IPv4 on.
func (n *namespace) set(settings ...string) error {
	var err error
	for _, s := range settings {
		err = errors.Join(err, n.run("", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/"+s))
	}
	return err
}

// run carries out a command, and returns what it complains of.
func run(input, name string, args ...string) error {
	return runCommand(exec.Command(name, args...), input)
}

func runCommand(cmd *exec.Cmd, input string) error {
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
