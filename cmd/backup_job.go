package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
)

// recentVerification is the age up to which a verification is not repeated in the same night.
const recentVerification = 20 * time.Hour

// recordBackup records a backup, if the database's schema version has a table for it.
func recordBackup(app core.App, name string) error {
	if !collections.HasBackupsTable(app) {
		return nil
	}
	return collections.RecordBackup(app, name, now())
}

// recordVerification records the result of a verification in the data folder, unless it is a scratch folder without a database.
func (p *Program) recordVerification(name string, good bool) error {
	if p.requireDatabase() != nil {
		return nil //nolint:nilerr // no database to record it in
	}
	opened, err := p.openFolder(p.dir)
	if err != nil {
		return err
	}
	if collections.HasBackupsTable(opened.App) {
		if good {
			err = collections.RecordBackupVerified(opened.App, name, now())
		} else {
			err = collections.ClearBackupVerified(opened.App, name)
		}
	}
	return errors.Join(err, opened.Close())
}

// nightlyBackup returns the job that creates and verifies a backup, then removes old ones; nil if backups are disabled.
func (s *Service) nightlyBackup() func(ctx context.Context, app core.App) (int, error) {
	if s.settings.Backup.Keep == 0 {
		return nil
	}
	return func(ctx context.Context, app core.App) (int, error) {
		b, err := openBackups(app.DataDir(), s.settings)
		if err != nil {
			return 0, err
		}
		defer func() { _ = b.store.Close() }() // all is written
		name, _, err := backup.Create(ctx, app, b.store, b.keys, s.program.Version, now())
		if err != nil {
			return 0, err
		}
		if err := collections.RecordBackup(app, name, now()); err != nil {
			return 0, err
		}
		if err := s.program.verifyInSubprocess(ctx, app.DataDir(), name); err != nil {
			return 0, err
		}
		verified, err := collections.VerifiedBackups(app)
		if err != nil {
			return 0, err
		}
		var names []string
		for _, one := range verified {
			names = append(names, one.Name)
		}
		return b.store.Keep(ctx, s.settings.Backup.Keep, names)
	}
}

// verifyNewest verifies the newest backup, including one created by a command, unless that was done in the same night.
func (s *Service) verifyNewest(ctx context.Context, app core.App) (int, error) {
	b, err := openBackups(app.DataDir(), s.settings)
	if err != nil {
		return 0, err
	}
	defer func() { _ = b.store.Close() }() // read only
	stored, err := b.store.List(ctx)
	if err != nil || len(stored) == 0 {
		return 0, err
	}
	verified, err := collections.VerifiedBackups(app)
	if err != nil {
		return 0, err
	}
	lately := slices.ContainsFunc(verified, func(v collections.VerifiedBackup) bool {
		return v.Name == stored[0].Name && now().Sub(v.At) < recentVerification
	})
	if lately {
		return 0, nil
	}
	if err := s.program.verifyInSubprocess(ctx, app.DataDir(), stored[0].Name); err != nil {
		return 0, err
	}
	return 1, nil
}

// verifyInSubprocess verifies a backup in a separate process, because a process holds the keys of one database only. That process records the result.
func (p *Program) verifyInSubprocess(ctx context.Context, dir, name string) error {
	if p.Self == "" {
		return errors.New("this program cannot start itself: verify the backup by command")
	}
	command := exec.CommandContext(ctx, p.Self, "backup", "verify", name, "--dir", dir) //nolint:gosec // the program itself, with names that it created
	command.Env = p.Environ
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		if text := strings.TrimSpace(output.String()); text != "" {
			err = errors.New(strings.TrimPrefix(strings.ReplaceAll(text, "\n", "; "), "vigil: "))
		}
		return fmt.Errorf("verify the backup: %w", err)
	}
	return nil
}

// inspectBackups logs at startup what would prevent tonight's backup. It checks a bucket in the background: readings must not wait for a bucket
// that is unavailable.
func (s *Service) inspectBackups(ctx context.Context) {
	if s.settings.Backup.Keep == 0 {
		return
	}
	if err := s.probeBackups(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("backups cannot be stored: the next nightly backup will fail", slog.Any("error", err))
	}
}

func (s *Service) probeBackups(ctx context.Context) error {
	if s.settings.Backup.S3Bucket == "" {
		folder := backupFolder(s.app.DataDir(), s.settings)
		if err := backup.Writable(folder); err != nil {
			return fmt.Errorf("the folder %s: %w", folder, reasonOf(err))
		}
		return nil
	}
	b, err := openBackups(s.app.DataDir(), s.settings)
	if err != nil {
		return err
	}
	return errors.Join(b.store.Probe(ctx), b.store.Close())
}

// reasonOf returns why a file could not be used, without the path, which the caller prints.
func reasonOf(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
