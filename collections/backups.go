package collections

import (
	"context"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// NoteBackupTaken notes a backup that is whole where backups are kept.
func NoteBackupTaken(app core.App, name string, at time.Time) error {
	_, err := change(app, "note the backup", `INSERT INTO backups (name, taken_at) VALUES ({:name}, {:at}) ON CONFLICT (name) DO UPDATE SET taken_at = {:at}`,
		dbx.Params{"name": name, "at": Instant(at)})
	return err
}

// NoteBackupVerified notes a backup that was proven to be good.
func NoteBackupVerified(app core.App, name string, at time.Time) error {
	_, err := change(app, "note the verified backup", `INSERT INTO backups (name, verified_at) VALUES ({:name}, {:at}) ON CONFLICT (name) DO UPDATE SET verified_at = {:at}`,
		dbx.Params{"name": name, "at": Instant(at)})
	return err
}

// NoteBackupDamaged takes back that a backup is good.
func NoteBackupDamaged(app core.App, name string) error {
	_, err := change(app, "note the damaged backup", `UPDATE backups SET verified_at = '' WHERE name = {:name}`, dbx.Params{"name": name})
	return err
}

// HasBackups reports whether backups are noted in the database, which one of an earlier version does not do.
func HasBackups(app core.App) bool { return app.HasTable("backups") }

// BackupTimes are when the last backup was taken, and when one was last verified; zero for never. Backups of earlier versions are known by the
// runs of the job that took them.
func BackupTimes(app core.App) (taken, verified time.Time, err error) {
	var takenAt, verifiedAt string
	err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(MAX(taken_at), ''), COALESCE(MAX(verified_at), '') FROM backups`).Row(&takenAt, &verifiedAt)
	if err == nil && takenAt == "" {
		err = app.ConcurrentDB().NewQuery(`SELECT COALESCE(MAX(started_at), '') FROM job_runs
			WHERE job = 'backup' AND status = 'succeeded' AND json_valid(counts) AND counts ->> '$.taken' = 1`).Row(&takenAt)
	}
	return ParseInstant(takenAt), ParseInstant(verifiedAt), wrap(err, "read when backups were taken")
}

// VerifiedBackups are the names of backups that were proven to be good and when, the last one first.
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

// VerifiedBackup is a backup that was proven to be good.
type VerifiedBackup struct {
	Name string
	At   time.Time
}

// ProveWriting commits something, as every reading does, to see whether the database takes it: a number in its header that nobody uses, as often
// as pages of the journal are to be filled. It makes no row, and no statement has to be understood anew because of it.
func ProveWriting(ctx context.Context, app core.App, pages int) error {
	for range pages {
		if _, err := app.NonconcurrentDB().NewQuery("PRAGMA user_version = 1").WithContext(ctx).Execute(); err != nil {
			return wrap(err, "write to the database")
		}
	}
	return nil
}
