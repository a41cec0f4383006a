package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/electkv/election/internal/testenv/install"
)

// settingFile is where a run's setting is noted, in the folder of its results.
const settingFile = "setting.json"

// A setting is what a run is made with.
type setting struct {
	Begun  time.Time `json:"begun"`
	Commit string    `json:"commit"` // of the repository; "…, changed" if files differ from it
	Go     string    `json:"go"`
	System string    `json:"system"`
	CPUs   int       `json:"cpus"`
	Etcd   string    `json:"etcd"`
	Consul string    `json:"consul"`
	Redis  string    `json:"redis"`

	Postgres string `json:"postgres"`
	MariaDB  string `json:"mariadb"`
}

// begin makes the folder, which must be empty if it is there, and notes the
// setting in it.
func begin(ctx context.Context, dir string, log io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return fmt.Errorf("%s is not empty (%v): results of several runs would be mixed", dir, err)
	}
	text, err := json.MarshalIndent(look(ctx, log), "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, settingFile), append(text, '\n'), 0o644)
}

// look looks around. What cannot be found out is noted as such.
func look(ctx context.Context, log io.Writer) setting {
	s := setting{
		Begun:  time.Now().UTC().Truncate(time.Second),
		Commit: said(exec.CommandContext(ctx, "git", "rev-parse", "HEAD")),
		Go:     runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + said(exec.CommandContext(ctx, "uname", "-r")),
		CPUs:   runtime.NumCPU(),
		Etcd:   version(ctx, "--version", func() (string, error) { return install.Etcd.Path(ctx, log) }),
		Consul: version(ctx, "version", func() (string, error) { return install.Consul.Path(ctx, log) }),
		Redis:  version(ctx, "--version", install.Redis),

		Postgres: version(ctx, "--version", install.Postgres),
		MariaDB:  version(ctx, "--version", mariadb),
	}
	if changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output(); err != nil || len(changes) > 0 {
		s.Commit += ", changed"
	}
	return s
}

// mariadb returns the path of MariaDB's server.
func mariadb() (string, error) {
	server, _, err := install.MariaDB()
	return server, err
}

// version returns the first line that a server says of its version.
func version(ctx context.Context, arg string, path func() (string, error)) string {
	file, err := path()
	if err != nil {
		return "unknown: " + err.Error()
	}
	return said(exec.CommandContext(ctx, file, arg))
}

// said returns the first line of what a command says.
func said(cmd *exec.Cmd) string {
	out, err := cmd.Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
