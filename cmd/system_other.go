//go:build !unix

package cmd

// setUmask does nothing on systems without a umask.
func setUmask() {}

// switchToOwner does nothing on systems without root.
func switchToOwner(string, func()) error { return nil }

// openFileLimit returns the limit of open files, which is unknown on this system.
func openFileLimit() (files uint64, ok bool) { return 0, false }
