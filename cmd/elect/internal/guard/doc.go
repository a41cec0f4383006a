// Package guard keeps a command from outliving the leadership it runs under,
// whatever happens to the process that leads.
//
// # Three processes
//
//	elect ──orders──▶ guard ──▶ COMMAND ──▶ …
//	      ◀─reports──
//
// elect holds the lease. The guard, the same program in another role, is the
// parent of COMMAND. It is started with COMMAND's path, arguments and environment
// as its own, so the kernel hands on every byte. Over a pipe elect tells it until
// when the lease can be trusted, again after each refresh. COMMAND is told to stop
// (SIGTERM) and then killed (SIGKILL, one grace later) as soon as
//
//   - elect says so,
//   - that instant passes and nobody has extended it: elect is stopped, swapped
//     out or stuck,
//   - the pipe closes: elect is dead,
//   - COMMAND itself ends and leaves processes behind.
//
// If elect is dead, the guard on Linux then releases the lease, so that others do not
// wait for the TTL (Spec.Release, and release.go of the command).
//
// Grace counts from the end of trust at the latest, so the code that computes
// trust subtracts the grace first.
//
// # A guard that is frozen
//
// Only the goroutine that writes to the guard waits for it. What there is to
// tell is merged until it can be written. A signal, or the order to stop, is
// followed by SIGCONT, for a guard that somebody stopped. A guard looks for
// newer orders before it decides that trust has run out. If it has not ended a
// grace and some patience after the order to stop, or after the end of trust as
// elect knows it, a timer kills it, and COMMAND dies with it.
//
// What neither of them can help: elect and the guard stopped at the same time, or a
// machine on which the guard gets no processor for as long as is kept in reserve for
// the kill. COMMAND runs on then; that is what fencing tokens are for.
//
// # Who is killed
//
// On Linux, all processes: the guard is a subreaper (prctl(2),
// PR_SET_CHILD_SUBREAPER), so each descendant of COMMAND stays a descendant of
// the guard, also after setsid(2) and a double fork. It kills what it finds
// below itself in /proc until wait4(2) reports that no child is left, which is
// final, because each process that was forked in between has become its child.
// If the guard itself dies, the kernel kills COMMAND (PR_SET_PDEATHSIG) and the
// rest falls to elect, a subreaper too, which does the same.
//
// /proc must be that of their PID namespace: Adopt refuses any other. COMMAND's
// process group is signalled without it, as long as COMMAND has not been collected
// and its process id is no stranger's.
//
// Out of reach are processes in an uninterruptible system call, and, without
// root, processes that changed their user. Processes that a daemon starts on
// COMMAND's behalf (docker run, systemd-run, at) never were its descendants.
//
// On other Unix systems it is COMMAND's process group that is stopped; processes
// that leave the group are not found, and the death of the guard itself is not
// noticed by COMMAND.
//
// # The first process of a container
//
// There elect is the parent of every orphan, also of those that do not come of
// COMMAND (docker exec). It collects all that end. If the guard dies, they cannot
// be told from COMMAND's descendants, and are killed as well.
package guard
