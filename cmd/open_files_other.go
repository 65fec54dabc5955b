//go:build !unix

package cmd

// mostFiles returns the limit of open files, which is unknown on this system.
func mostFiles() (files uint64, ok bool) { return 0, false }
