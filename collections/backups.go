package collections

import (
	"context"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RecordBackup records a complete backup.
func RecordBackup(app core.App, name string, at time.Time) error {
	_, err := execCounted(app, "note the backup", `INSERT INTO backups (name, taken_at) VALUES ({:name}, {:at}) ON CONFLICT (name) DO UPDATE SET taken_at = {:at}`,
		dbx.Params{"name": name, "at": FormatInstant(at)})
	return err
}

// RecordBackupVerified records that a backup was verified.
func RecordBackupVerified(app core.App, name string, at time.Time) error {
	_, err := execCounted(app, "note the verified backup", `INSERT INTO backups (name, verified_at) VALUES ({:name}, {:at}) ON CONFLICT (name) DO UPDATE SET verified_at = {:at}`,
		dbx.Params{"name": name, "at": FormatInstant(at)})
	return err
}

// ClearBackupVerified records that a backup is damaged.
func ClearBackupVerified(app core.App, name string) error {
	_, err := execCounted(app, "note the damaged backup", `UPDATE backups SET verified_at = '' WHERE name = {:name}`, dbx.Params{"name": name})
	return err
}

// HasBackupsTable reports whether the schema has the backups table; earlier versions have none.
func HasBackupsTable(app core.App) bool { return app.HasTable("backups") }

// BackupTimes returns when the last backup was taken and when one was last verified, or zero. Backups of earlier versions are found through
// the runs of the backup job.
func BackupTimes(app core.App) (taken, verified time.Time, err error) {
	var takenAt, verifiedAt string
	err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(MAX(taken_at), ''), COALESCE(MAX(verified_at), '') FROM backups`).Row(&takenAt, &verifiedAt)
	if err == nil && takenAt == "" {
		err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(MAX(started_at), '') FROM job_runs
			WHERE job = 'backup' AND status = 'succeeded' AND json_valid(counts) AND counts ->> '$.taken' = 1`).Row(&takenAt)
	}
	return ParseInstant(takenAt), ParseInstant(verifiedAt), wrap(err, "read when backups were taken")
}

// VerifiedBackups returns the verified backups, the newest first.
func VerifiedBackups(app core.App) ([]VerifiedBackup, error) {
	var rows []struct {
		Name string `db:"name"`
		At   string `db:"verified_at"`
	}
	err := app.ConcurrentDB().NewQuery(`SELECT name, verified_at FROM backups WHERE verified_at != '' ORDER BY name DESC`).All(&rows)
	backups := make([]VerifiedBackup, len(rows))
	for i, row := range rows {
		backups[i] = VerifiedBackup{row.Name, ParseInstant(row.At)}
	}
	return backups, wrap(err, "read which backups were verified")
}

// VerifiedBackup is the name and verification time of a backup.
type VerifiedBackup struct {
	Name string
	At   time.Time
}

// ProbeWrite commits to the database as a reading does, to test that it accepts writes: it sets an unused number in the file header, once for
// each journal page to fill. It creates no row and invalidates no prepared statement.
func ProbeWrite(ctx context.Context, app core.App, pages int) error {
	for range pages {
		if _, err := app.NonconcurrentDB().NewQuery("PRAGMA user_version = 1").WithContext(ctx).Execute(); err != nil {
			return wrap(err, "write to the database")
		}
	}
	return nil
}
