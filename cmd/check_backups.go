package cmd

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
)

// backupOld is the age from which the newest backup is worth a word: a night was left out.
const backupOld = 48 * time.Hour

// checkBackup looks where backups are kept, as far as that is no neighbour, and when one was last taken and proven.
func (c *checkup) checkBackup(ctx context.Context) {
	const subject = "backup"
	bucket, folder := c.settings.Backup.S3Bucket != "", backupFolder(c.program.dir, c.settings)
	if !bucket {
		if err := backup.Writable(folder); err != nil {
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
		if newest, err = newestIn(ctx, folder); err != nil {
			c.fail(subject, "%v", err)
			return
		}
		if newest.Name == "" && !taken.IsZero() {
			c.warn(subject, "there is none in %s, where one was taken %s ago", folder, age(c.now, taken))
			return
		}
		size := uint64(newest.Size) //nolint:gosec // of a file
		if free, known := diskFree(nearest(folder)); known && free < max(diskEmpty, size) {
			c.warn(subject, "%s free in %s, where the newest has %s: the next will not fit", inMegabytes(free), folder, inMegabytes(size))
			return
		}
		taken = newest.CreatedAt
	}
	c.sayBackup(taken, newest.Name, verified)
}

// sayBackup says how old the newest backup is, and whether it was that one that was proven to be good. Of a bucket the newest has no name here.
func (c *checkup) sayBackup(taken time.Time, newest string, verified []collections.VerifiedBackup) {
	const subject = "backup"
	var last time.Time // that one was proven
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
		c.warn(subject, "there is none yet: vigil backup create takes one")
	case c.now.Sub(taken) > backupOld:
		c.warn(subject, "the newest is %s old, %s", age(c.now, taken), proven)
	case c.settings.Backup.Keep > 0 && !last.IsZero() && c.now.Sub(last) > backupOld:
		c.warn(subject, "the newest is %s old, and none was proven to be good for %s", age(c.now, taken), age(c.now, last))
	default:
		c.ok(subject, "the newest is %s old, %s", age(c.now, taken), proven)
	}
}

// newestIn is the newest backup in a folder; none when there is no folder, which is not made: an unmounted disk looks so, too.
func newestIn(ctx context.Context, folder string) (newest backup.Stored, err error) {
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
