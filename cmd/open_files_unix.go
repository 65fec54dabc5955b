//go:build unix

package cmd

import "syscall"

// openFileLimit returns the process's limit of open files; ok is false if it is unknown.
func openFileLimit() (files uint64, ok bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true //nolint:unconvert // signed on some systems
}
