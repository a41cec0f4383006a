//go:build unix && !linux

package testenv

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// children returns the processes whose parent is pid.
func children(pid int) ([]int, error) {
	text, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var found []int
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("ps: %w", err)
		}
		found = append(found, child)
	}
	return found, nil
}

// processState returns the letter of a process's state, or the empty string if
// there is no such process.
func processState(pid int) string {
	text, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || len(strings.TrimSpace(string(text))) == 0 {
		return ""
	}
	return strings.TrimSpace(string(text))[:1]
}
