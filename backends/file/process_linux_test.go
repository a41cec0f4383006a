package filekv_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

const (
	// patience is what a busy machine may add to anything that is owed.
	patience = time.Minute
	// ample is a TTL that no test outlasts.
	ample = 10 * time.Minute
)

// roles are what the test binary does when it is started as another process.
var roles = map[string]func(s *filekv.Store, name string, ttl time.Duration) error{
	"hold":    hold,
	"inherit": inherit,
	"heir":    heir,
	"full":    full,
	"umask":   umask,
	"hammer":  hammer,
	"nobody":  hold,
	"last":    last,
	"claim":   claim,
	"try":     try,
	"read":    read,
}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv("FILEKV_ROLE")]
	if !ok {
		testenv.Parallel(8)
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func play(role func(*filekv.Store, string, time.Duration) error) error {
	ttl, err := time.ParseDuration(os.Getenv("FILEKV_TTL"))
	if err != nil {
		return err
	}
	switch os.Getenv("FILEKV_ROLE") {
	case "umask":
		unix.Umask(0o077)
	case "nobody", "read":
		if os.Geteuid() != 0 {
			break
		}
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	s, err := filekv.New(os.Getenv("FILEKV_DIR"), &filekv.Options{ReadOnly: os.Getenv("FILEKV_ROLE") == "read"})
	if err != nil {
		return err
	}
	return role(s, os.Getenv("FILEKV_NAME"), ttl)
}

// hold creates a record and refreshes it until it cannot.
func hold(s *filekv.Store, name string, ttl time.Duration) error {
	rec, err := s.Create(context.Background(), name, signed(ttl))
	if err != nil {
		return err
	}
	fmt.Println("holding", rec.Token)
	for {
		time.Sleep(ttl / 4)
		if _, err := s.Refresh(context.Background(), name, rec); err != nil {
			return err
		}
	}
}

// last creates a lasting record beside one of its own, and waits to be killed.
func last(s *filekv.Store, name string, ttl time.Duration) error {
	rec := signed(ttl)
	rec.Lasting = true
	if _, err := s.Create(context.Background(), name, rec); err != nil {
		return err
	}
	if _, err := s.Create(context.Background(), name+" own", signed(ttl)); err != nil {
		return err
	}
	fmt.Println("holding")
	select {}
}

// claim waits for the safe, and holds it.
func claim(s *filekv.Store, name string, ttl time.Duration) error {
	for _, err := range s.Watch(context.Background(), name) {
		switch {
		case errors.Is(err, kv.ErrVacant):
			if err := hold(s, name, ttl); !errors.Is(err, kv.ErrHeld) {
				return err
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// read tells what it sees.
func read(s *filekv.Store, name string, _ time.Duration) error {
	for rec, err := range s.Watch(context.Background(), name) {
		switch {
		case err == nil:
			fmt.Println("held by", rec.Signature)
		case errors.Is(err, kv.ErrVacant):
			fmt.Println("vacant")
		default:
			return err
		}
	}
	return nil
}

// try asks once.
func try(s *filekv.Store, name string, ttl time.Duration) error {
	rec, err := s.Create(context.Background(), name, signed(ttl))
	if errors.Is(err, kv.ErrHeld) {
		fmt.Println("refused:", err)
		return nil
	}
	fmt.Println("holding", rec.Token)
	return err
}

// inherit creates a record, passes all its descriptors on to a child that does
// not care, and waits to be killed.
func inherit(s *filekv.Store, name string, ttl time.Duration) error {
	if _, err := s.Create(context.Background(), name, signed(ttl)); err != nil {
		return err
	}
	heir := exec.Command("sleep", "600")
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		path, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err != nil || filepath.Dir(path) != s.Lives() {
			continue
		}
		var n uintptr
		fmt.Sscan(fd.Name(), &n)
		heir.ExtraFiles = append(heir.ExtraFiles, os.NewFile(n, path))
	}
	if len(heir.ExtraFiles) != 1 {
		return fmt.Errorf("%d life files are open", len(heir.ExtraFiles))
	}
	if err := heir.Start(); err != nil {
		return err
	}
	fmt.Println("inherited by", heir.Process.Pid)
	select {}
}

// full writes on a disk that takes no more bytes. The limit of the size of files
// is enforced by the kernel at the same place.
func full(s *filekv.Store, name string, ttl time.Duration) error {
	ctx := context.Background()
	rec, err := s.Create(ctx, name, signed(ttl))
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ)
	limit := func(n uint64) error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY})
	}
	if err := limit(16); err != nil {
		return err
	}
	_, createErr := s.Create(ctx, "another", signed(ttl))
	fmt.Println("create:", createErr)
	_, refreshErr := s.Refresh(ctx, name, rec)
	fmt.Println("refresh:", refreshErr)
	got, err := s.Get(ctx, name)
	fmt.Println("unharmed:", got == rec, err)
	_, err = filekv.New(os.Getenv("FILEKV_DIR"), nil)
	fmt.Println("new:", err)
	fmt.Println("delete:", s.Delete(ctx, name, rec))
	_, createErr = s.Create(ctx, name, signed(ttl))
	fmt.Println("create again:", createErr)
	temps, err := os.ReadDir(s.Temps())
	fmt.Println("left behind:", len(temps), err)
	if err := limit(unix.RLIM_INFINITY); err != nil {
		return err
	}
	again, err := s.Create(ctx, name, signed(ttl))
	fmt.Println("after it was freed:", again.Token > rec.Token, err)
	return nil
}

// umask creates a record under a umask that hides everything, and leaves.
func umask(s *filekv.Store, name string, ttl time.Duration) error {
	_, err := s.Create(context.Background(), name, signed(ttl))
	fmt.Println("created:", err)
	bufio.NewScanner(os.Stdin).Scan()
	return err
}

// A process is another process on a store.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan string
}

// command returns a command that plays a role on the store in dir.
func command(t testing.TB, role, dir, name string, ttl time.Duration) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "FILEKV_ROLE="+role, "FILEKV_DIR="+dir, "FILEKV_NAME="+name, "FILEKV_TTL="+ttl.String())
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd
}

// start starts a command, which is killed when the test ends.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{t: t, cmd: cmd, lines: make(chan string, 100)}
	go func() {
		defer close(p.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() { p.dies() })
	return p
}

func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) } // it may have gone

// dies kills the process, and returns what it still said when its locks are gone.
func (p *process) dies() (said []string) {
	p.signal(unix.SIGKILL)
	for line := range p.lines {
		said = append(said, line)
	}
	_ = p.cmd.Wait() // killed
	return said
}

// line returns the process's next line.
func (p *process) line() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(patience):
		require.FailNow(p.t, "the process said nothing")
		return ""
	}
}

// says returns what follows prefix in the process's next line.
func (p *process) says(prefix string) string {
	p.t.Helper()
	line := p.line()
	rest, ok := strings.CutPrefix(line, prefix)
	require.True(p.t, ok, "the process said %q, not %q", line, prefix)
	return strings.TrimSpace(rest)
}

func signed(ttl time.Duration) kv.Record {
	return kv.Record{Signature: fmt.Sprintf("pid %d at %d", os.Getpid(), time.Now().UnixNano()), Value: "v", TTL: ttl}
}
