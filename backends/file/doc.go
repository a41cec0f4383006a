// Package filekv keeps safes in a directory that processes of one host share.
// There is no server: the kernel judges. Choose it where all candidates run on one
// host; if the leader's process dies, the next one leads within 0.1 s.
//
//	store, err := filekv.New("/run/myapp/election", nil)
//	if err != nil {
//		return err
//	}
//	candidate, err := election.New(store, "billing", nil)
//	if err != nil {
//		return err
//	}
//	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
//		return bill(ctx, term.Token()) // return soon after ctx has ended
//	})
//
// # Guarantees
//
// At most one live record per safe, and larger tokens for later signatures,
// even if processes crash at any point, freeze in the middle of a write, or fill the
// disk. A write is one rename(2) of a file whose name is the state that the writer
// saw. No name is used twice, so the rename is the file system's own
// compare-and-swap: it fails if anybody else has written since. Writers exclude each
// other without a lock, so no lock can be lost, unlinked, or held by a frozen
// process. They do queue up at a flock(2), but only for order, for at most 200 ms,
// and then go on without it.
//
// A record ends in one of two ways, whichever comes first.
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
// Only processes of one boot and one time namespace can compare deadlines. A
// container may have a boot id, or a time namespace, of its own on the same host, so
// another boot id does not mean that the holder is dead, and neither does a lock that
// is free: another kernel may hold it. So a record by another clock is observed. A
// candidate that has seen it unchanged for its TTL, on the candidate's own clock, may
// take the safe, at exactly the head that it saw. Between containers, and after a
// restart of the host, a dead holder's record therefore ends one TTL after somebody
// first looked. A Create that is refused writes down what it saw and since when. So
// programs that ask once and end get in as well: a program that asks a TTL after the
// first one, on the same clock, is not refused. If a crash of the host has torn a
// page, its safe is vacant at once.
//
// A lasting record (kv.Record.Lasting), which keeps an election closed after its
// leader has gone, has no holder. It expires only at its deadline. After a restart of
// the host, and in a container with a boot id or time namespace of its own, the wall
// clock tells when that is. If the wall clock is set forward, the record ends that much
// earlier there. If it is set back, the record lasts that much longer; a record that
// would then live for more than its TTL and 300 ms is over at once.
//
// A process or a virtual machine that is restored from a checkpoint (CRIU, a snapshot)
// does not know how long it was away. Its clocks may go on where they stopped; then it
// trusts its record for the time that was left at the checkpoint. That is so with every
// store. Until its next refresh fails, only the token stops its writes. Two machines made from one
// snapshot have one boot id and two clocks: never let them share the directory.
//
// Three things break it: a directory that several kernels mount and whose renames are
// not atomic for all of them (New refuses file systems that are not known to be local);
// files that somebody removes or edits by hand; and, for tokens, a file system that
// loses what was synced. If a safe's folder is removed, its record is gone, which the holder
// learns at its next refresh; tokens continue from the wall clock, in microseconds.
//
// A writer looks at the clock just before its rename. If it is stopped between
// the two, beyond the deadline, its refresh may bring back a record that somebody
// has already seen expire, as long as nobody has taken the safe. It never takes the
// safe from anybody.
//
// System calls on files cannot be cancelled. The context is checked between
// them, so a call returns late while the disk hangs.
//
// # Records
//
//	safes/<name>/<number>.<id>   the head of a safe, an empty file: its name is the state
//	safes/<name>/<id>            the page that the head names
//	safes/<name>/seen.<hash>     since when a record by another clock is observed
//	lives/<id>                   the life file of a process, locked while it has records
//	temps/                       files that are being written
//
// A write puts a new page into the folder, renames the head to the next number
// and that page's id, and removes the old page. A vacant safe has a head without
// an id. The token of a signature is the number of the write that brought it in.
// The head stays when the safe is vacant, so numbers are never used twice; the
// first is the wall clock in microseconds.
//
// A page has two lines of JSON. The first is what the file store needs: clock, deadline,
// TTL, life file and name; for a lasting record also when it expires by the wall clock, and
// a life that has no file. The second is the text form of the record (package kv). Lease
// names the life file and the safe.
//
// In <name>, lower-case letters, digits, "-", "_" and inner dots stand for themselves;
// other bytes are written as %xx, and a long one ends in a hash. A name has at most
// 1,024 bytes, a signature with its value and note 1 MiB.
//
// Anything else found at the name (a plain file, a symbolic link, a folder of
// other things, a page that is not ours) is a foreign, permanent record.
//
// # Requirements
//
// A local file system with flock(2). New tries it, and refuses a kind of file system
// that it does not know to be local (FUSE, 9p, virtiofs, NFS, SMB and others), unless
// Options.AnyFileSystem is set. A user that may use the directory may use its records:
// the files get the permissions of the directory, whatever the umask is, so a group
// shares a directory of mode 2770. New creates a missing directory with mode 0700. Do
// not share a directory that has the sticky bit among users.
//
// Linux, macOS and Windows; on Windows folders are not synced. The tests run on
// Linux.
//
// Remove nothing in the directory while it is in use, and keep it away from cleaners
// of old files: in /run rather than /tmp. If a life file is removed all the same, its
// records live until their deadlines. If the whole directory is removed, or moved
// away, its records are gone: watches tell within some 250 ms, the next refresh is
// refused, and the next Create makes the directory anew. Tokens continue from the wall
// clock.
//
// For observers, Options.ReadOnly makes a store that creates nothing and needs no
// permission to write.
//
// On a full disk leadership may change hands at every TTL: a record that ends makes
// room for the next one, but not enough room to refresh it.
//
// # Cost
//
// An operation is some thirty system calls, about 0.1 ms on an idle machine.
// Create and a hand-over sync the page and the folder, which takes as long as the disk
// needs. A store with live records has one open file and one timer. When its last
// record ends, it looks through all safes, which takes 30 µs each, in case one was
// handed over to it.
//
// The watches of a store share one goroutine, one inotify instance and a tick of
// 50 ms, which reads the clock and tries the lock of each life file that they
// wait for. That takes some 6 µs per holder, however many records it has. So a watch
// sees a vacancy after a crash, or at a deadline, within some 100 ms. The kernel tells
// it of a change of the safe, and of a refresh too, which costs each watch a look or
// two at one file. If there is no inotify instance to be had, watches look every 250 ms.
package filekv
