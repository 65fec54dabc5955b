//go:build !unix

package cmd

// setUmask does nothing on systems without a umask.
func setUmask() {}

// switchToOwner does nothing on systems without root.
func switchToOwner(string, func()) error { return nil }
