//go:build !unix

package paxoskv

// syncFolder does nothing where folders cannot be synced: a rename is kept as the
// system sees fit.
func syncFolder(string) error { return nil }
