//go:build !linux && !darwin && !freebsd

package cmd

// diskFree returns the free space of a folder's disk, which is unknown on this system.
func diskFree(string) (bytes uint64, ok bool) { return 0, false }
