package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

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
		Use: "verify [NAME]", Short: "Restore a backup (the newest) into a scratch folder and check it completely", Args: maybeOneArg("name"), RunE: p.verifyBackup,
	}
	var replace bool
	restore := &cobra.Command{
		Use: "restore [NAME]", Short: "Restore a backup (the newest) into the data folder; fails while a process has the folder open", Args: maybeOneArg("name"),
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

// withBackups opens the settings and the store for a command.
func (p *Program) withBackups(use func(backups) error) error {
	settings, err := p.settings()
	if err != nil {
		return err
	}
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
	return p.withBackups(func(b backups) error {
		found, err := b.store.Find(cmd.Context(), named(args))
		if err != nil {
			return err
		}
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
	return p.withBackups(func(b backups) error {
		found, err := b.store.Find(cmd.Context(), named(args))
		if err != nil {
			return err
		}
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
