package testenv

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children returns the processes whose parent is pid.
func children(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if stat := processStat(child); len(stat) > 1 && stat[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found, nil
}

// processState returns the letter of a process's state, or the empty string if
// there is no such process.
func processState(pid int) string {
	if stat := processStat(pid); len(stat) > 0 {
		return stat[0]
	}
	return ""
}

// processStat returns what the kernel tells of a process, from its state on: see
// proc_pid_stat(5). The name before it may hold anything.
func processStat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
