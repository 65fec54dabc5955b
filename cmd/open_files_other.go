//go:build !unix

package cmd

// openFileLimit returns the limit of open files, which is unknown on this system.
func openFileLimit() (files uint64, ok bool) { return 0, false }
