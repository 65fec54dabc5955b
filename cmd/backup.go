package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
)

func (p *Program) backupCommand() *cobra.Command {
	command := &cobra.Command{Use: "backup", Short: "Create, verify and restore encrypted backups while the service runs", RunE: helpOnly}
	create := &cobra.Command{Use: "create", Short: "Create a backup now", Args: noArgs, RunE: p.createBackup}
	list := &cobra.Command{Use: "list", Short: "List the backups, newest first", Args: noArgs, RunE: p.listBackups}
	verify := &cobra.Command{
		Use: "verify [NAME|FILE]", Short: "Restore a backup (the newest) into a scratch folder and check it completely", Args: maybeOneArg("name"), RunE: p.verifyBackup,
	}
	var replace bool
	restore := &cobra.Command{
		Use: "restore [NAME|FILE]", Short: "Restore a backup (the newest) into the data folder; fails while a process has the folder open", Args: maybeOneArg("name"),
		RunE: func(cmd *cobra.Command, args []string) error { return p.restoreBackup(cmd, args, replace) },
	}
	restore.Flags().BoolVar(&replace, "replace", false, "move an existing database aside")
	adopt := &cobra.Command{
		Use: "adopt", Short: "Prepare a database from a replica or disk snapshot, before the first start on it", Args: noArgs,
		Long: "The service then searches the EMR for every unconfirmed delivery before it sends it again. A database that vigil backup restore\n" +
			"restored is already prepared. Safe to repeat, and without a database.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSchema(p.dir); err != nil {
				return err
			}
			return backup.PrepareImported(cmd.Context(), p.dir)
		},
	}
	command.AddCommand(create, list, verify, restore, adopt)
	return command
}

// backups holds the store and keys that the commands and the nightly job use.
type backups struct {
	store *backup.Store
	keys  backup.Keys
}

func openBackups(dir string, settings config.Settings) (backups, error) {
	if err := settings.RequireEncryption(); err != nil {
		return backups{}, err
	}
	ring, err := phi.NewKeyRing(settings.EncryptionKeys...)
	if err != nil {
		return backups{}, fmt.Errorf("VIGIL_ENCRYPTION_KEYS: %w", err)
	}
	b := settings.Backup
	keys := backup.Keys{Ring: ring, Recipients: b.Recipients}
	if b.S3Bucket != "" {
		at, err := backup.OpenBucket(bucketOf(b, b.S3Prefix))
		return backups{backup.NewStore(at), keys}, err
	}
	at, err := backup.OpenFolder(backupFolder(dir, settings))
	return backups{backup.NewStore(at), keys}, err
}

// bucketOf returns the configuration of a prefix of the configured bucket.
func bucketOf(b config.Backup, prefix string) backup.BucketConfig {
	return backup.BucketConfig{
		Name: b.S3Bucket, Region: b.S3Region, Endpoint: b.S3Endpoint, AccessKey: b.S3AccessKey, Secret: b.S3Secret.Reveal(),
		ForcePathStyle: b.S3ForcePathStyle, Prefix: prefix,
	}
}

// backupFolder returns the folder of the backups if no bucket is configured.
func backupFolder(dir string, settings config.Settings) string {
	return cmp.Or(settings.Backup.Folder, filepath.Join(dir, "snapshots"))
}

// withBackup opens the settings and finds a backup by its name, by the path of its file, or the newest, for a command.
func (p *Program) withBackup(ctx context.Context, args []string, use func(backups, backup.Stored) error) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	name := named(args)
	if file := filepath.Base(name); name != "" && file != name {
		if !exists(name) {
			return fmt.Errorf("there is no file %s", name)
		}
		settings.Backup.S3Bucket, settings.Backup.Folder, name = "", filepath.Dir(name), file
	}
	return p.withStore(settings, func(b backups) error {
		found, err := b.store.Find(ctx, name)
		if err != nil {
			return err
		}
		return use(b, found)
	})
}

// withBackups opens the settings and the store for a command.
func (p *Program) withBackups(use func(backups) error) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	return p.withStore(settings, use)
}

func (p *Program) withStore(settings config.Settings, use func(backups) error) error {
	b, err := openBackups(p.dir, settings)
	if err != nil {
		return err
	}
	return errors.Join(use(b), b.store.Close())
}

func (p *Program) createBackup(cmd *cobra.Command, _ []string) error {
	if err := p.requireDatabase(); err != nil {
		return err
	}
	return p.withBackups(func(b backups) error {
		opened, err := p.openFolder(p.dir)
		if err != nil {
			return err
		}
		name, manifest, err := backup.Create(cmd.Context(), opened.App, b.store, b.keys, p.Version, now())
		if err == nil {
			err = recordBackup(opened.App, name)
		}
		if err := errors.Join(err, opened.Close()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", name, summary(manifest))
		return nil
	})
}

func (p *Program) listBackups(cmd *cobra.Command, _ []string) error {
	return p.withBackups(func(b backups) error {
		stored, err := b.store.List(cmd.Context())
		for _, one := range stored {
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %8.1f MB\n", one.Name, one.CreatedAt.Format(time.RFC3339), float64(one.Size)/1e6)
		}
		return err
	})
}

func (p *Program) verifyBackup(cmd *cobra.Command, args []string) error {
	return p.withBackup(cmd.Context(), args, func(b backups, found backup.Stored) error {
		manifest, err := backup.Verify(cmd.Context(), b.store, b.keys, found.Name, p.dir, p.openFolder)
		if cmd.Context().Err() == nil {
			err = errors.Join(err, p.recordVerification(found.Name, err == nil))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", found.Name, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is good: %s\n", found.Name, summary(manifest))
		return nil
	})
}

func (p *Program) restoreBackup(cmd *cobra.Command, args []string, replace bool) error {
	return p.withBackup(cmd.Context(), args, func(b backups, found backup.Stored) error {
		manifest, aside, err := backup.Restore(cmd.Context(), b.store, b.keys, found.Name, p.dir, replace, now())
		if aside != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "the previous database is in %s\n", aside)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", found.Name, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "restored %s: %s\n", found.Name, summary(manifest))
		return nil
	})
}

// openFolder opens a data folder without changing it. It fails if the ring lacks a key that stored values need.
func (p *Program) openFolder(dir string) (backup.Opened, error) {
	settings, err := p.settings()
	if err != nil {
		return backup.Opened{}, err
	}
	app, err := NewApp(dir, settings)
	if err == nil {
		err = bootstrap(app)
	}
	if err == nil {
		_, err = unlock(app, settings, keyring.Check) // verifying the audit trail needs its key
	}
	return backup.Opened{App: app, Close: func() error { return app.ClearBootstrap() }}, err
}

func named(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func summary(m backup.Manifest) string {
	return fmt.Sprintf("%d patients, %d readings, %d audit entries, as of %s", m.Counts.Patients, m.Counts.Observations, m.Counts.AuditEntries,
		m.CreatedAt.Format(time.RFC3339))
}

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
		if errors.Is(err, backup.ErrDamaged) {
			s.inspector.Suspect()
		}
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
		return b.store.Prune(ctx, s.settings.Backup.Keep, names)
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
		return errors.New("this program cannot start itself: run vigil backup verify")
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

// replicaAge returns the age of the replica at each scrape, and logs once when Litestream no longer reports it.
func (s *Service) replicaAge() func() (time.Duration, bool) {
	replica, failing := backup.NewReplica(s.app.DataDir(), s.now()), false
	return func() (time.Duration, bool) {
		age, configured, err := replica.Age(context.Background(), s.now())
		if err != nil && !failing {
			s.log.Warn("the age of the replica is unknown; each scrape retries", slog.Any("error", err))
		}
		failing = err != nil
		return age, configured
	}
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
		if err := backup.CheckWritable(folder); err != nil {
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
