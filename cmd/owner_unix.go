//go:build unix

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// closeFiles makes whatever the process makes its owner's alone: SQLite and PocketBase would let everybody read what the machine lets them.
func closeFiles() { syscall.Umask(0o077) }

// actAsOwner gives up the rights of root for those of the user whose database lies in a folder. The files that a command leaves there, locks and
// journals among them, would otherwise be ones that the service cannot open. Where root's own service runs nothing changes.
func actAsOwner(dir string, before func()) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(dir, "data.db"))
	if err != nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return nil //nolint:nilerr // there is no folder, and so nobody else's
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
			return fmt.Errorf("work as user %d, whose data folder this is: %w", uid, err)
		}
	}
	return nil
}
