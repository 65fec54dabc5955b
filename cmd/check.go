package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// exitStatus ends a command with a status and no further message.
type exitStatus int

// Error is empty: the command has printed everything.
func (exitStatus) Error() string { return "" }

// exitWarned is check's status for warnings without failures.
const exitWarned exitStatus = 2

func (p *Program) checkCommand() *cobra.Command {
	var deep bool
	command := &cobra.Command{
		Use: "check", Short: "Check whether the service can run here: settings, folder, keys, disk, external services, backups", Args: noArgs,
		Long: "Prints one line per subject: ok, warn or fail. Exit status: 0 if all is well, 1 if a check failed, 2 if there are warnings\n" +
			"only. Changes nothing, and works while the service runs. With --deep it reads the whole database, however long it\n" +
			"takes, and contacts mail server, EMR, identity provider and bucket. Without it no other system is contacted.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := &checkup{program: p, out: cmd.OutOrStdout(), deep: deep, now: now()}
			return c.run(cmd.Context())
		},
	}
	command.Flags().BoolVar(&deep, "deep", false, "also read the whole database, and contact mail server, EMR, identity provider and bucket")
	return command
}

// checkup is one run of check. Source: docs/decisions/operating.md, "Check".
type checkup struct {
	program  *Program
	out      io.Writer
	deep     bool
	now      time.Time
	settings config.Settings
	app      core.App // nil if no database opens

	failed, warned bool
}

func (c *checkup) report(level, subject, text string, about ...any) {
	fmt.Fprintf(c.out, "%s %s: %s\n", level, subject, strings.ReplaceAll(fmt.Sprintf(text, about...), "\n", "; "))
}

func (c *checkup) ok(subject, text string, about ...any) { c.report("ok", subject, text, about...) }

func (c *checkup) warn(subject, text string, about ...any) {
	c.warned = true
	c.report("warn", subject, text, about...)
}

func (c *checkup) fail(subject, text string, about ...any) {
	c.failed = true
	c.report("fail", subject, text, about...)
}

// run checks all subjects in order. With invalid settings it skips the subjects that need them.
func (c *checkup) run(ctx context.Context) error {
	readable := c.checkSettings()
	exists := c.checkFolder()
	if readable {
		defer c.checkKeys(ctx, exists)()
	}
	c.checkDisk()
	if readable {
		c.checkTime()
		c.checkSMTP(ctx)
		c.checkEMR(ctx)
		c.checkSignOn(ctx)
		c.checkBucket(ctx)
		c.checkCertificate()
		c.checkBackup(ctx)
		c.checkWarehouse()
	}
	switch {
	case c.failed:
		return exitStatus(exitFailed)
	case c.warned:
		return exitWarned
	}
	return nil
}

func (c *checkup) checkSettings() (readable bool) {
	settings, err := c.program.settings()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			c.fail("settings", "%s", strings.TrimSpace(line))
		}
		return false
	}
	c.settings = settings.WithPublicURL("http://" + defaultAddr)
	for _, warning := range settings.Warnings() {
		c.warn("settings", "%s", warning)
	}
	if err := checkAppendable(settings.LogFile); err != nil {
		c.fail("settings", "VIGIL_LOG_FILE: %s cannot be written: %v", settings.LogFile, reasonOf(err))
		return true
	}
	c.ok("settings", "%s, at %s", settings.Environment, c.settings.PublicURL)
	return true
}

// checkAppendable returns an error if the file could not be opened for appending or created; it creates no file. An empty name is valid.
func checkAppendable(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // a path from the operator
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if folder := filepath.Dir(name); exists(folder) {
		return backup.CheckWritable(folder)
	}
	return err
}

// checkFolder reports whether there is a database that this version can open.
func (c *checkup) checkFolder() (exists bool) {
	const subject = "folder"
	dir := c.program.dir
	if err := backup.CheckWritable(dir); err != nil {
		c.fail(subject, "%s cannot be written: %v", dir, reasonOf(err))
		return false
	}
	file := filepath.Join(dir, "data.db")
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // also for a mistyped --dir
		c.warn(subject, "there is no database in %s: the service creates one at its first start", dir)
		return false
	case err != nil:
		c.fail(subject, "%s: %v", file, reasonOf(err))
		return false
	}
	for _, name := range databaseFiles(dir) { // before opening the database: closing one of its files would release this process's locks
		if err := checkAppendable(name); err != nil {
			c.fail(subject, "%s cannot be written: %v", name, reasonOf(err))
			return false
		}
	}
	if err := checkSchema(dir); err != nil {
		c.fail(subject, "%v", err)
		return false
	}
	if info.Mode().Perm()&otherPermissions != 0 {
		c.warn(subject, "every user of this machine can read %s: the service makes it private when it starts", file)
	} else {
		c.ok(subject, "%s, with a database of %s", dir, inMegabytes(databaseSize(dir)))
	}
	return true
}

// checkKeys opens the database for the other checks, and returns a function that closes it.
func (c *checkup) checkKeys(ctx context.Context, exists bool) (leave func()) {
	const subject = "keys"
	leave = func() {}
	if err := c.settings.RequireEncryption(); err != nil {
		c.fail(subject, "%v", err)
		return leave
	}
	what := fmt.Sprintf("%d in the ring, %s seals", len(c.settings.EncryptionKeys), c.settings.EncryptionKeys[0].ID)
	if !exists {
		c.ok(subject, "%s", what)
		return leave
	}
	opened, err := c.program.openFolder(c.program.dir)
	if err != nil {
		c.fail(subject, "%v", err)
		if opened.App != nil {
			_ = opened.Close() // nothing was written
		}
		return leave
	}
	c.app = opened.App
	c.checkPages(ctx)
	if err := collections.CheckAuditTriggers(c.app); err != nil {
		c.fail("folder", "%v; see docs/operations.md, \"Upgrade\"", err)
	}
	c.ok(subject, "%s; stored values need no other key", what)
	return func() { _ = opened.Close() } // nothing was written
}

// pagesBudget is how long check reads the database without --deep.
const pagesBudget = 10 * time.Second

// checkPages reads the whole database, without --deep as far as possible in a few seconds. Otherwise the next backup would be the first to find
// damage in rarely read pages.
func (c *checkup) checkPages(ctx context.Context) {
	if !c.deep {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, pagesBudget)
		defer end()
	}
	switch err := sqlite.QuickCheck(ctx, c.app.ConcurrentDB()); {
	case errors.Is(err, sqlite.ErrDamaged):
		c.fail("folder", "the database is damaged; see docs/operations.md, \"A damaged database\"")
	case errors.Is(err, context.DeadlineExceeded) && !c.deep:
		c.ok("folder", "the database was not examined: that takes more than %s; --deep does", pagesBudget)
	case err != nil:
		c.fail("folder", "%v", err)
	}
}

const (
	// minDiskSpace is the free space below which the service can hardly store anything.
	minDiskSpace = 16 << 20
	// backupHeadroom is the free space to keep in addition to the copy of the database that a backup needs.
	backupHeadroom = 100 << 20
)

func (c *checkup) checkDisk() {
	const subject = "disk"
	free, known := diskFree(nearestExisting(c.program.dir))
	size := databaseSize(c.program.dir)
	switch {
	case !known:
		c.ok(subject, "the free space is unknown on this system")
	case free < minDiskSpace:
		c.fail(subject, "%s free: readings are rejected when the disk is full", inMegabytes(free))
	case free < size+backupHeadroom:
		c.warn(subject, "%s free, too little for a backup, which needs space for a copy of the database (%s) and %s more",
			inMegabytes(free), inMegabytes(size), inMegabytes(backupHeadroom))
	default:
		c.ok(subject, "%s free", inMegabytes(free))
	}
}

// nearestExisting returns the folder, or the closest existing folder above it.
func nearestExisting(dir string) string {
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// databaseFiles returns the database, its WAL and its shared memory. The service writes to all of them.
func databaseFiles(dir string) []string {
	file := filepath.Join(dir, "data.db")
	return []string{file, file + "-wal", file + "-shm"}
}

// databaseSize returns the size of the database and its WAL.
func databaseSize(dir string) (bytes uint64) {
	for _, name := range databaseFiles(dir)[:2] {
		if info, err := os.Stat(name); err == nil {
			bytes += uint64(info.Size()) //nolint:gosec // a file size
		}
	}
	return bytes
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func inMegabytes(bytes uint64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// clockSlack is how far the clock may be behind the latest time in the database.
const clockSlack = 2 * time.Minute

func (c *checkup) checkTime() {
	const subject = "time"
	local := c.now.In(c.settings.PracticeLocation).Format("2006-01-02 15:04 MST")
	if c.app == nil {
		c.ok(subject, "%s in %s", local, c.settings.PracticeTimeZone)
		return
	}
	last, err := collections.LastJobStart(c.app)
	switch {
	case err != nil:
		c.fail(subject, "%v", err)
	case last.Sub(c.now) > clockSlack:
		c.fail(subject, "the clock is %s behind the latest time in the database: it shows %s", last.Sub(c.now).Round(time.Second), local)
	default:
		c.ok(subject, "%s in %s", local, c.settings.PracticeTimeZone)
	}
}
