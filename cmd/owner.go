package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

// otherPermissions are the permissions of users who are neither a file's owner nor in its group.
const otherPermissions = 0o007

// makeFolderPrivate removes other users' permissions on the files of a data folder that other programs created.
func makeFolderPrivate(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&otherPermissions == 0 {
			continue // removed since, or already private
		}
		if err := os.Chmod(filepath.Join(dir, entry.Name()), info.Mode().Perm()&^otherPermissions); err != nil {
			return fmt.Errorf("make the data folder's files private: %w", err)
		}
	}
	return nil
}

// keepUserCommands lists the commands that keep their user: services, and commands that use no data folder.
var keepUserCommands = []string{
	"vigil", "vigil serve", "vigil demo", "vigil help", "vigil keys generate", "vigil simulate", "vigil emr-sandbox", "vigil __complete",
	"vigil ingress", "vigil dispatcher", "vigil events dead list", "vigil events dead retry", "vigil events unassigned list", "vigil events unassigned show",
	"vigil events unassigned assign",
}

// becomeOwner switches a command that root runs on another user's data folder to that user. It first reads the settings, which may be readable by
// root only. Source: docs/decisions/operating.md, "File ownership".
func (p *Program) becomeOwner(cmd *cobra.Command) error {
	if slices.Contains(keepUserCommands, cmd.CommandPath()) {
		return nil
	}
	return switchToOwner(p.dir, func() {
		if settings, err := p.settings(); err == nil { // the command itself reports invalid settings
			p.loaded = &settings
		}
	})
}
