//go:build unix

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// setUmask makes new files private to the process's user: SQLite and PocketBase would create them with the default permissions.
func setUmask() { syscall.Umask(0o077) }

// switchToOwner switches from root to the owner of a folder's database. Otherwise the service could not open the locks and journals that a command
// leaves there. Nothing changes if root owns the database.
func switchToOwner(dir string, before func()) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(dir, "data.db"))
	if err != nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return nil //nolint:nilerr // no folder, and thus no other owner
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	before()
	uid, gid := int(owner.Uid), int(owner.Gid)
	for _, give := range []func() error{
		func() error { return syscall.Setgroups([]int{gid}) }, func() error { return syscall.Setgid(gid) }, func() error { return syscall.Setuid(uid) },
	} {
		if err := give(); err != nil {
			return fmt.Errorf("switch to user %d, the owner of the data folder: %w", uid, err)
		}
	}
	return nil
}

// openFileLimit returns the process's limit of open files; ok is false if it is unknown.
func openFileLimit() (files uint64, ok bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true //nolint:unconvert // signed on some systems
}
