// Package filekv keeps safes in a directory that processes of one host share.
// There is no server: the kernel judges.
//
//	store, err := filekv.New("/run/myapp/election")
//
// # Guarantees
//
// At most one live record a safe, and larger tokens for later signatures,
// whatever processes do: crash at any point, freeze in the middle of a write,
// fill the disk. A write is one link(2) of a finished file to a name that must
// not exist yet, which is the file system's own compare-and-swap: no lock stands
// between two writers, so none can be lost, unlinked or left behind by a frozen
// process. Writers queue up at a flock(2) for order alone, for at most 200 ms,
// and go on without it.
//
// A record fades in two ways, whichever comes first.
//
//   - At its deadline, on a clock that counts time asleep and that nobody can
//     set (Linux: CLOCK_BOOTTIME). This ends the record of a holder that hangs,
//     or is stopped.
//   - With its holder: a record names the life file of its holder's process,
//     which that process keeps locked by flock(2). The kernel drops the lock when
//     the process ends, however it ends, and the safe is vacant at once.
//
// A child that inherited the life file's descriptor keeps a dead holder's
// record alive, but only up to the deadline. Descriptors are opened
// close-on-exec, so this takes a program that passes them on by intent.
//
// After a restart of the host every record is vacant: no lock has survived.
//
// What breaks it: a directory that several hosts share (New refuses the network
// file systems that it knows), somebody who removes or edits files by hand, and
// for tokens a crash of the host on a file system that loses a synced file. When
// a safe's whole folder is removed its record is gone, which the holder learns
// at its next refresh; tokens go on from the wall clock, in microseconds.
//
// System calls on files cannot be cancelled. A context is looked at between
// them, so a call returns late while the disk hangs.
//
// Processes in different time namespaces, or in containers that fake the boot
// id, cannot compare their clocks. To each other their records live exactly as
// long as the life file is locked: a stopped holder then keeps the safe until it
// is killed.
//
// # Records
//
//	safes/<name>/<number>   a page of the safe: its state since some write
//	lives/<id>              the life file of a process, locked while it has records
//	temps/                  files that are being written
//
// The page with the highest number is the safe's state; a write adds the next
// one and removes those before it. An empty page is a vacant safe. Otherwise a
// page has two lines of JSON: what the file store needs (clock, deadline, life
// file, name), and the text form of the record (package kv). The token of a
// signature is the number of the page that brought it in. Numbers are never used
// twice, as the last page stays when the safe is vacant; the first is the wall
// clock in microseconds.
//
// Names keep lower-case letters, digits, "-", "_" and inner dots; other bytes
// are written as %xx, and long names end in a hash. A name has at most 1,024
// bytes, a signature with its value 1 MiB.
//
// Anything else found at the name (a plain file, a symbolic link, a page that is
// not ours) is a foreign, permanent record.
//
// # Requirements
//
// A local file system with hard links and flock(2). New checks both. Who may use
// the directory may use its records: the files get the permissions of the
// directory whatever the umask is, so a directory of mode 2770 is shared by its
// group. New creates a missing directory with mode 0700. Do not share one with
// the sticky bit among users.
//
// Linux, macOS and Windows; on Windows a page is not synced with its folder.
//
// No element of the directory may be removed while it is in use. Should a life
// file be removed all the same (a cleaner of old files; each refresh makes it
// young again), its records live by their deadlines.
//
// # Cost
//
// An operation is some twenty system calls, no more than a few hundred
// microseconds without a sync. Create and a hand-over sync the page and its
// folder, a refresh does not. A store with live records has one open file and
// one timer.
//
// The watches of a store share one goroutine, one inotify instance and a tick of
// 50 ms, which reads the clock and tries the lock of each life file that they
// wait for, some 5 µs a holder, however many records it has. So a vacancy after
// a crash or at a deadline is seen within about 50 ms. A change of the safe is
// pushed; so is a refresh, which costs each watch one look at one file. If there
// is no inotify instance to be had, watches look every 250 ms.
package filekv
