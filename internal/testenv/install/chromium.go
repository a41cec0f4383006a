package install

import (
	"errors"
	"os/exec"
)

// ErrNoChromium means that this machine has no Chromium. Its text says how to come by one.
var ErrNoChromium = errors.New("no Chromium is in PATH: install one " +
	"(Debian: apt-get install chromium-headless-shell; Fedora: dnf install chromium; macOS: brew install --cask chromium)")

// Chromium returns the path of a browser with the engine of Chromium, or ErrNoChromium.
func Chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "Chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return lookFor(ErrNoChromium, "chromium-headless-shell")
}
