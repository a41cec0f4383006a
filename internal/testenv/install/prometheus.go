package install

import "errors"

// ErrNoPrometheus means that this machine has no Prometheus. Its text says how to come
// by one.
var ErrNoPrometheus = errors.New("prometheus and promtool are not in PATH: install them " +
	"(Debian, Ubuntu: apt-get install prometheus; Fedora: dnf install prometheus; macOS: brew install prometheus)")

// Prometheus returns the path of prometheus, or ErrNoPrometheus.
func Prometheus() (string, error) {
	return lookFor(ErrNoPrometheus, "prometheus")
}

// Promtool returns the path of promtool, which the packages of Prometheus bring along, or
// ErrNoPrometheus.
func Promtool() (string, error) {
	return lookFor(ErrNoPrometheus, "promtool")
}
