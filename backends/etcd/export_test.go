package etcdkv

import "time"

// WaitAside has batches wait for up to d for what is done beside them, for tests that need it done.
func WaitAside(d time.Duration) { aside = d }

// Lately is how long ago a lease was kept alive at most if a record is created with it as it is.
const Lately = lately
