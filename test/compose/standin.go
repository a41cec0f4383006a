package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

// recipes has a folder for each stand-in: a Dockerfile, and what it copies besides
// the programs.
//
//go:embed standins
var recipes embed.FS

// shell returns the commands that the Dockerfiles, the entry points and
// docker-compose.yml call, and more if given.
func shell(more ...string) []string {
	return append([]string{
		"sh", "cat", "chmod", "chown", "cp", "dirname", "find", "grep", "id", "ln", "ls", "mkdir", "mktemp", "mv", "rm", "sed",
		"setpriv", "sleep", "uname",
	}, more...)
}

// buildStandIn builds an image from the programs that this machine has. It has
// the name, paths, users, entry point and environment of the official one, as
// far as docker-compose.yml needs them.
func buildStandIn(ctx context.Context, log io.Writer, image string) error {
	name := standInFor(image)
	fill, known := fillings()[name]
	if !known {
		return fmt.Errorf("there is no stand-in for %s: add one to test/compose/standins", image)
	}
	dir, err := os.MkdirTemp("", "election-stand-in-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	recipe, err := fs.Sub(recipes, "standins/"+name)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, recipe); err != nil {
		return err
	}
	root, err := newTree(filepath.Join(dir, "root"))
	if err != nil {
		return err
	}
	version, err := fill(ctx, log, root)
	if err != nil {
		return fmt.Errorf("build a stand-in for %s: %w", image, err)
	}
	_, err = docker(ctx, "build", "--quiet", "--network=none", "--tag="+image,
		"--label="+standInLabel+"="+version+" of this machine, for tests only", dir)
	if err != nil {
		return fmt.Errorf("build a stand-in for %s: %w", image, err)
	}
	return nil
}

// standInFor returns the name of an image's stand-in: the image's own, without its
// registry and tag.
func standInFor(image string) string {
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}

// A filling puts the programs of a stand-in in, and returns what they are.
type filling func(context.Context, io.Writer, *tree) (version string, err error)

// fillings returns those of all stand-ins.
func fillings() map[string]filling {
	return map[string]filling{
		"busybox": putBusybox, "curl": putCurl, "etcd": putEtcd, "consul": putConsul, "redis": putRedis, "postgres": putPostgres, "mariadb": putMariaDB,
	}
}

func putEtcd(ctx context.Context, log io.Writer, t *tree) (version string, err error) {
	for _, b := range []struct {
		binary install.Binary
		at     string
	}{{install.Etcdctl, "/usr/local/bin/etcdctl"}, {install.Etcd, "/usr/local/bin/etcd"}} {
		if version, err = putBinary(ctx, log, t, b.binary, b.at); err != nil {
			return "", err
		}
	}
	return version, nil
}

func putConsul(ctx context.Context, log io.Writer, t *tree) (string, error) {
	if err := t.commands(shell()...); err != nil {
		return "", err
	}
	return putBinary(ctx, log, t, install.Consul, "/usr/bin/consul")
}

func putBinary(ctx context.Context, log io.Writer, t *tree, b install.Binary, at string) (string, error) {
	from, err := b.Path(ctx, log)
	if err != nil {
		return "", err
	}
	return filepath.Base(from), t.program(from, at)
}

func putRedis(ctx context.Context, _ io.Writer, t *tree) (string, error) {
	server, err := install.Redis()
	if err != nil {
		return "", err
	}
	if err := t.commands(shell("redis-cli")...); err != nil {
		return "", err
	}
	if err := t.program(server, "/usr/bin/redis-server"); err != nil {
		return "", err
	}
	return output(exec.CommandContext(ctx, server, "--version"))
}

func putPostgres(ctx context.Context, _ io.Writer, t *tree) (string, error) {
	server, err := install.Postgres()
	if err != nil {
		return "", err
	}
	if err := t.commands(shell()...); err != nil {
		return "", err
	}
	real, root := install.Behind(server)
	programs := filepath.Dir(real)
	for _, name := range []string{"postgres", "initdb", "pg_ctl", "pg_isready", "psql"} {
		from := filepath.Join(programs, name)
		if err := t.programBelow(root, from, strings.TrimPrefix(from, root)); err != nil {
			return "", err
		}
	}
	// Packages put programs in BASE/VERSION/bin, libraries in BASE/VERSION/lib, and
	// the rest in /usr/share/postgresql/VERSION.
	home := strings.TrimPrefix(filepath.Dir(programs), root)
	if err := t.folder(root, filepath.Join(home, "lib"), "bitcode", "pgxs", "llvmjit*"); err != nil {
		return "", err
	}
	if err := t.folder(root, filepath.Join("/usr/share/postgresql", filepath.Base(home)), "man"); err != nil {
		return "", err
	}
	if err := t.folder("", "/usr/share/zoneinfo", "right", "posix"); err != nil {
		return "", err
	}
	return output(exec.CommandContext(ctx, server, "--version"))
}

func putMariaDB(ctx context.Context, _ io.Writer, t *tree) (string, error) {
	server, setup, err := install.MariaDB()
	if err != nil {
		return "", err
	}
	if err := t.commands(shell("mariadb", "my_print_defaults", "resolveip")...); err != nil {
		return "", err
	}
	if err := t.program(server, "/usr/sbin/mariadbd"); err != nil {
		return "", err
	}
	if err := t.program(setup, "/usr/bin/mariadb-install-db"); err != nil {
		return "", err
	}
	_, root := install.Behind(server)
	if err := t.folder(root, "/usr/share/mysql"); err != nil {
		return "", err
	}
	return output(exec.CommandContext(ctx, server, "--version"))
}
