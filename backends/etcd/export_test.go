package etcdkv

import "time"

// WaitAside has batches wait for up to d for what is done beside them, for tests that need it done.
func WaitAside(d time.Duration) { aside = d }
