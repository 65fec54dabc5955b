//go:build !unix

package cmd

// closeFiles does nothing on systems without a umask.
func closeFiles() {}

// actAsOwner does nothing on systems without root.
func actAsOwner(string, func()) error { return nil }
