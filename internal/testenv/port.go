//go:build unix

package testenv

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// A port is a TCP port of the loopback interface that is ours as long as the
// test process lives, whether a server listens at it just now or not.
type port struct {
	number int
	bound  *os.File // nil where a port cannot be kept
}

// takePort finds a free port that is free for UDP as well.
func takePort() (*port, error) {
	var last error
	for range 20 {
		p, err := tryPort()
		if err == nil {
			return p, nil
		}
		last = err
	}
	return nil, fmt.Errorf("free port: %w", last)
}

func tryPort() (*port, error) {
	p, err := reservePort()
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenPacket("udp4", p.addr())
	if err != nil {
		p.release()
		return nil, err
	}
	udp.Close()
	return p, nil
}

// addr returns the port as host:port.
func (p *port) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

func (p *port) release() {
	if p.bound != nil {
		p.bound.Close()
	}
}

// bindAny binds a socket to a free loopback port and does not listen.
func bindAny() (*os.File, int, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, 0, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "port")
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		f.Close()
		return nil, 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		f.Close()
		return nil, 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		f.Close()
		return nil, 0, os.NewSyscallError("getsockname", err)
	}
	return f, name.(*syscall.SockaddrInet4).Port, nil
}
