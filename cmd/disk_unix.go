//go:build linux || darwin || freebsd

package cmd

import "golang.org/x/sys/unix"

// diskFree is what the disk of a folder can still take from somebody who is not root; ok is false where nobody says.
func diskFree(folder string) (bytes uint64, ok bool) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, false
	}
	return uint64(max(0, disk.Bavail)) * uint64(disk.Bsize), true //nolint:gosec,unconvert // signed on some systems
}
