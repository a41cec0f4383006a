// Package guard keeps a command from outliving the leadership it runs under,
// whatever happens to the process that leads.
//
// # Three processes
//
//	elect ──orders──▶ guard ──▶ COMMAND ──▶ …
//	      ◀─reports──
//
// elect holds the lease. The guard, the same program in another role, is the
// parent of COMMAND. Over a pipe elect tells it until when the lease can be
// trusted, again after each refresh. COMMAND is told to stop (SIGTERM) and then
// killed (SIGKILL, one grace later) as soon as
//
//   - elect says so,
//   - that instant passes and nobody has extended it: elect is stopped, swapped
//     out or stuck,
//   - the pipe closes: elect is dead,
//   - COMMAND itself ends and leaves processes behind.
//
// Grace counts from the end of trust at the latest, so whoever reckons trust
// takes the grace off first.
//
// # Who is killed
//
// On Linux, everybody: the guard is a subreaper (prctl(2),
// PR_SET_CHILD_SUBREAPER), so each descendant of COMMAND stays a descendant of
// the guard, also after setsid(2) and a double fork. It kills what it finds
// below itself in /proc until wait4(2) reports that no child is left, which is
// final, because whoever forked in between has become its child. If the guard
// itself dies, the kernel kills COMMAND (PR_SET_PDEATHSIG) and the rest falls to
// elect, a subreaper too, which does the same.
//
// Out of reach are processes in an uninterruptible system call, and, without
// root, processes that changed their user.
//
// On other Unix systems it is COMMAND's process group that is stopped; processes
// that leave the group are not found, and the death of the guard itself is not
// noticed by COMMAND.
package guard
