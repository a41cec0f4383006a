package guard

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// wholeTree says that the end of all children of a guard is that of all descendants of
// the command.
const wholeTree = true

// adopt makes this process the parent of its orphaned descendants. It must be able
// to find them.
func adopt() error {
	if err := checkProc(); err != nil {
		return err
	}
	return os.NewSyscallError("prctl(PR_SET_CHILD_SUBREAPER)", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// DieWithParent asks the kernel to kill a new process when the thread that starts
// it ends: lock the goroutine to its thread first.
func DieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGKILL
}

// everybody returns all descendants of this process. It looks twice: while a process ends, its
// children are on their way to another parent, and may be seen below neither.
func everybody() []int {
	first, second := descendants(os.Getpid()), descendants(os.Getpid())
	for _, pid := range first {
		if !slices.Contains(second, pid) {
			second = append(second, pid)
		}
	}
	return second
}

// signalAll signals the process group of the command, and those of some descendants of this
// process that are outside of it. The group is signalled as one, which no fork can escape:
// always while the command, whose id it has, has not been collected, and then as
// long as one of them is in it. A group that has ended may be a stranger's by now.
// No child may be collected between the look for them and the signal. Errors
// are no news: ESRCH means that somebody has just ended, EPERM that it changed its
// user; wait4 tells who is left.
func signalAll(group int, descendants []int, sig syscall.Signal) {
	told := isChild(group)
	if told {
		_ = syscall.Kill(-group, sig)
	}
	for _, pid := range descendants {
		pgid, err := syscall.Getpgid(pid)
		switch {
		case err != nil:
		case pgid != group:
			_ = syscall.Kill(pid, sig)
		case !told:
			told = true
			_ = syscall.Kill(-group, sig)
		}
	}
}

// isChild reports whether pid is a child of this process that was not collected,
// and so still that child's. It needs no /proc.
func isChild(pid int) bool {
	for pid > 0 {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
	return false
}

// descendants returns the processes below root, as far as they stood still
// while /proc was read.
func descendants(root int) []int {
	childrenOf := childrenOfThreads
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		childrenOf = childrenOfAll() // a kernel without CONFIG_PROC_CHILDREN
	}
	return below(root, childrenOf)
}

func below(root int, childrenOf func(pid int) []int) []int {
	found := []int{}
	seen := map[int]bool{root: true} // a recycled id must not make a circle
	for next := childrenOf(root); len(next) > 0; next = next[1:] {
		pid := next[0]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		found = append(found, pid)
		next = append(next, childrenOf(pid)...)
	}
	return found
}

// childrenOfThreads reads what proc_tid_children(5) tells of each thread of a process:
// its work does not grow with the processes of the machine. Where a child ends
// meanwhile, others may be missing.
func childrenOfThreads(pid int) []int {
	var children []int
	threads := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, thread := range numbered(threads) {
		text, err := os.ReadFile(threads + "/" + strconv.Itoa(thread) + "/children")
		if err != nil {
			continue // it has ended
		}
		for field := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// childrenOfAll asks all processes who their parents are.
func childrenOfAll() func(pid int) []int {
	children := map[int][]int{}
	for _, pid := range numbered("/proc") {
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	return func(pid int) []int { return children[pid] }
}

// numbered returns those entries of a directory that are numbers.
func numbered(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// parentOf reads the fourth field of proc_pid_stat(5). The second, the
// command's name in parentheses, may itself contain anything.
func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
