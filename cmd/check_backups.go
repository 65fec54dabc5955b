package cmd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
)

// maxBackupAge is the age at which the newest backup causes a warning: a nightly backup is missing.
const maxBackupAge = 48 * time.Hour

// checkBackup checks the backup folder and the age and verification of the newest backup. checkBucket checks a bucket.
func (c *checkup) checkBackup(ctx context.Context) {
	const subject = "backup"
	bucket, folder := c.settings.Backup.S3Bucket != "", backupFolder(c.program.dir, c.settings)
	if !bucket {
		if err := backup.CheckWritable(folder); err != nil {
			c.fail(subject, "%s cannot be written: %v", folder, reasonOf(err))
			return
		}
	}
	var taken time.Time
	var verified []collections.VerifiedBackup
	if c.app != nil && collections.HasBackupsTable(c.app) {
		var err, unread error
		taken, _, err = collections.BackupTimes(c.app)
		verified, unread = collections.VerifiedBackups(c.app)
		if err := errors.Join(err, unread); err != nil {
			c.fail(subject, "%v", err)
			return
		}
	}
	var newest backup.Stored
	if !bucket {
		var err error
		if newest, err = newestBackup(ctx, folder); err != nil {
			c.fail(subject, "%v", err)
			return
		}
		if newest.Name == "" && !taken.IsZero() {
			c.warn(subject, "there is none in %s, although one was created %s ago", folder, age(c.now, taken))
			return
		}
		size := uint64(newest.Size) //nolint:gosec // a file size
		if free, known := diskFree(nearestExisting(folder)); known && free < max(minDiskSpace, size) {
			c.warn(subject, "%s free in %s, but the newest is %s: the next will not fit", inMegabytes(free), folder, inMegabytes(size))
			return
		}
		taken = newest.CreatedAt
	}
	if !bucket && exists(folder) || bucket && c.deep {
		c.checkBackupKeys(ctx)
	}
	c.reportBackup(taken, newest.Name, verified)
}

// checkBackupKeys warns of stored backups that the key ring cannot open. It is no failure, because
// the service starts without them.
func (c *checkup) checkBackupKeys(ctx context.Context) {
	const subject = "backup"
	if c.settings.RequireEncryption() != nil {
		return // reported with the keys
	}
	b, err := openBackups(c.program.dir, c.settings)
	if err != nil {
		c.fail(subject, "%v", err)
		return
	}
	defer func() { _ = b.store.Close() }() // read only
	stored, err := b.store.List(ctx)
	closed := map[string][]string{} // names by missing key
	for _, one := range stored {
		unopened := b.store.CheckKeys(ctx, b.keys, one.Name)
		if missing, ok := errors.AsType[*backup.MissingKeyError](unopened); ok {
			closed[missing.KeyID] = append(closed[missing.KeyID], one.Name)
		} else if unopened != nil {
			c.warn(subject, "%s: %v", one.Name, unopened)
		}
	}
	if err != nil {
		c.fail(subject, "%v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(closed)) {
		c.warn(subject, "%d of %d need the key %s, which VIGIL_ENCRYPTION_KEYS lacks, among them %s", len(closed[key]), len(stored), key, closed[key][0])
	}
}

// reportBackup reports the age of the newest backup and whether it was verified. For a bucket newest is "".
func (c *checkup) reportBackup(taken time.Time, newest string, verified []collections.VerifiedBackup) {
	const subject = "backup"
	var last time.Time // verification
	for _, one := range verified {
		if one.At.After(last) {
			last = one.At
		}
	}
	proven := "never verified"
	switch {
	case last.IsZero():
	case newest == "" || slices.ContainsFunc(verified, func(v collections.VerifiedBackup) bool { return v.Name == newest }):
		proven = "verified " + age(c.now, last) + " ago"
	default:
		proven = "not verified; an older one was, " + age(c.now, last) + " ago"
	}
	switch {
	case taken.IsZero():
		c.warn(subject, "there is none yet: create one with vigil backup create")
	case c.now.Sub(taken) > maxBackupAge:
		c.warn(subject, "the newest is %s old, %s", age(c.now, taken), proven)
	case c.settings.Backup.Keep > 0 && !last.IsZero() && c.now.Sub(last) > maxBackupAge:
		c.warn(subject, "the newest is %s old, and none was verified for %s", age(c.now, taken), age(c.now, last))
	default:
		c.ok(subject, "the newest is %s old, %s", age(c.now, taken), proven)
	}
}

// newestBackup returns the newest backup in a folder. It does not create a missing folder, which may be an unmounted disk.
func newestBackup(ctx context.Context, folder string) (newest backup.Stored, err error) {
	if !exists(folder) {
		return newest, nil
	}
	at, err := backup.OpenFolder(folder)
	if err != nil {
		return newest, err
	}
	store := backup.NewStore(at)
	stored, err := store.List(ctx)
	if err := errors.Join(err, store.Close()); err != nil || len(stored) == 0 {
		return newest, err
	}
	return stored[0], nil
}

func age(now, at time.Time) string { return max(0, now.Sub(at)).Round(time.Minute).String() }
