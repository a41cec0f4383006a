//go:build unix

package testenv

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

// A template is the data folder of a database server that has just been set up.
// Setting one up takes its program a while; it is done once, and copied.
type template struct {
	server string   // the program whose version the data belongs to
	asks   []string // it for that version
	owner  *account
	setup  string   // the program that sets it up
	args   []string // "DATA" stands for the folder that it is to make
}

// copyTo makes dir a copy of the template, and the owner's.
func (t template) copyTo(dir string) error {
	from, err := t.folder()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	return t.owner.give(dir)
}

// folder returns where the template is, which it makes first if it is missing.
func (t template) folder() (string, error) {
	version, err := exec.Command(t.server, t.asks...).Output()
	if err != nil {
		var said []byte
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			said = e.Stderr
		}
		return "", fmt.Errorf("%s %s: %w\n%s", t.server, strings.Join(t.asks, " "), err, said)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q", version, t.setup, t.args))
	name := fmt.Sprintf("%s-data-%.8x", filepath.Base(t.server), key)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return install.Template(ctx, name, t.fill)
}

// fill sets a server up where its owner may write, and copies that to dir.
func (t template) fill(dir string) (err error) {
	g, err := theGuard()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp(g.dir, "template-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := t.owner.give(home); err != nil {
		return err
	}
	data := filepath.Join(home, "data")
	args := make([]string, len(t.args))
	for i, arg := range t.args {
		args[i] = strings.ReplaceAll(arg, "DATA", data)
	}
	if err := t.owner.run(home, t.setup, args...); err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(data))
}
