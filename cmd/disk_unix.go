//go:build linux || darwin || freebsd

package cmd

import "golang.org/x/sys/unix"

// diskFree returns the space that an unprivileged user can still use on the folder's disk; ok is false if it is unknown.
func diskFree(folder string) (bytes uint64, ok bool) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, false
	}
	return uint64(max(0, disk.Bavail)) * uint64(disk.Bsize), true //nolint:gosec,unconvert // signed on some systems
}
