package doctor

import (
	"fmt"
	"os"
	"runtime"
)

func file(dir string) []Finding {
	return []Finding{
		{Level: OK, Subject: "scope", Found: "the processes of this host that share " + dir},
		fileClock(),
		directory(dir),
		{Level: OK, Subject: "holder's death", Found: "frees the record at once, as the kernel drops the holder's file lock; where the holder has another boot id or time namespace, as in a container, or the host was restarted, after the TTL"},
	}
}

func fileClock() Finding {
	if runtime.GOOS == "linux" {
		return Finding{Level: OK, Subject: "clock", Found: "CLOCK_BOOTTIME: nobody can set it, and it counts time asleep"}
	}
	return Finding{Warn, "clock", "the wall clock", "if somebody sets it forward, a record may end too early", "do not set the clock while leaders rely on it"}
}

func directory(dir string) Finding {
	info, err := os.Stat(dir)
	if err != nil {
		return Finding{Fail, "directory", err.Error(), "records are kept there", "make it accessible"}
	}
	f := fileSystem(dir)
	f.Subject, f.Found = "directory", fmt.Sprintf("%s on %s, mode %v", dir, f.Found, info.Mode().Perm())
	if info.Mode().Perm()&0o002 != 0 {
		f.Level, f.Why, f.Advice = Warn, "every user of the host can remove records", "take the write permission from others"
	}
	return f
}
