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

// ofOthers are the rights of those who are neither a file's owner nor of its group.
const ofOthers = 0o007

// closeFolder takes away what others may do with the files of a data folder that something else has put there.
func closeFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into the data folder: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&ofOthers == 0 {
			continue // it has gone, or is closed
		}
		if err := os.Chmod(filepath.Join(dir, entry.Name()), info.Mode().Perm()&^ofOthers); err != nil {
			return fmt.Errorf("close the data folder's files to others: %w", err)
		}
	}
	return nil
}

// ownUser are the commands that stay what they were started as: services, and what touches no data folder.
var ownUser = []string{
	"vigil", "vigil serve", "vigil demo", "vigil help", "vigil keys generate", "vigil simulate", "vigil emr-sandbox", "vigil __complete",
}

// becomeOwner has a command that root runs on somebody else's data folder work as that folder's user. What only root may read of the settings is
// read first. Source: docs/decisions/operating.md, "File ownership".
func (p *Program) becomeOwner(cmd *cobra.Command) error {
	if slices.Contains(ownUser, cmd.CommandPath()) {
		return nil
	}
	return actAsOwner(p.dir, func() {
		if settings, err := p.settings(); err == nil { // what is wrong with them the command says itself
			p.loaded = &settings
		}
	})
}
