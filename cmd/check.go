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
)

// exitStatus is a command that has said all there is to say, and ends with a status.
type exitStatus int

// Error is empty: nothing is to be added.
func (exitStatus) Error() string { return "" }

// exitWarned is check's status when nothing failed and something is to be looked at.
const exitWarned exitStatus = 2

func (p *Program) checkCommand() *cobra.Command {
	var deep bool
	command := &cobra.Command{
		Use: "check", Short: "Say whether the service would do its work here: settings, folder, keys, disk, neighbours, backups", Args: noArgs,
		Long: "One line for each subject: ok, warn or fail. Exit status 0 when all is well, 1 when something failed, 2 when there are warnings\n" +
			"only. Changes nothing, and works beside a running service. With --deep the whole database is read, and\n" +
			"mail server, EMR, identity provider and bucket are asked; nobody else is contacted without it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := &checkup{program: p, out: cmd.OutOrStdout(), deep: deep, now: now()}
			return c.run(cmd.Context())
		},
	}
	command.Flags().BoolVar(&deep, "deep", false, "read the whole database, and ask mail server, EMR, identity provider and bucket, too")
	return command
}

// checkup is one run of check. Source: docs/decisions/operating.md, "Check".
type checkup struct {
	program  *Program
	out      io.Writer
	deep     bool
	now      time.Time
	settings config.Settings
	app      core.App // nil when there is no database that opens

	failed, warned bool
}

func (c *checkup) say(level, subject, text string, about ...any) {
	fmt.Fprintf(c.out, "%s %s: %s\n", level, subject, strings.ReplaceAll(fmt.Sprintf(text, about...), "\n", "; "))
}

func (c *checkup) ok(subject, text string, about ...any) { c.say("ok", subject, text, about...) }

func (c *checkup) warn(subject, text string, about ...any) {
	c.warned = true
	c.say("warn", subject, text, about...)
}

func (c *checkup) fail(subject, text string, about ...any) {
	c.failed = true
	c.say("fail", subject, text, about...)
}

// run looks at one subject after the other. What the settings say of neighbours cannot be looked at when they are wrong.
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
	c.settings = settings.ServedAt("http://" + defaultAddr)
	for _, warning := range settings.Warnings() {
		c.warn("settings", "%s", warning)
	}
	if err := mayAppend(settings.LogFile); err != nil {
		c.fail("settings", "VIGIL_LOG_FILE: %s cannot be written: %v", settings.LogFile, reasonOf(err))
		return true
	}
	c.ok("settings", "%s, at %s", settings.Environment, c.settings.PublicURL)
	return true
}

// mayAppend reports whether a file could be written on, or made; it makes none. No file is no matter.
func mayAppend(name string) error {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // the operator names it
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if folder := filepath.Dir(name); exists(folder) {
		return backup.Writable(folder)
	}
	return err
}

// checkFolder reports whether there is a database that this program may open.
func (c *checkup) checkFolder() (exists bool) {
	const subject = "folder"
	dir := c.program.dir
	if err := backup.Writable(dir); err != nil {
		c.fail(subject, "%s cannot be written: %v", dir, reasonOf(err))
		return false
	}
	file := filepath.Join(dir, "data.db")
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // also a mistyped --dir
		c.warn(subject, "there is no database in %s: the service makes one at its first start", dir)
		return false
	case err != nil:
		c.fail(subject, "%s: %v", file, reasonOf(err))
		return false
	}
	for _, name := range databaseFiles(dir) { // before it is opened: a file that is closed gives up the locks of this process
		if err := mayAppend(name); err != nil {
			c.fail(subject, "%s cannot be written: %v", name, reasonOf(err))
			return false
		}
	}
	if err := checkSchema(dir); err != nil {
		c.fail(subject, "%v", err)
		return false
	}
	if info.Mode().Perm()&ofOthers != 0 {
		c.warn(subject, "everybody on this machine can read %s: the service closes it when it starts", file)
	} else {
		c.ok(subject, "%s, with a database of %s", dir, inMegabytes(databaseSize(dir)))
	}
	return true
}

// checkKeys opens the database, as the others need it, and returns what closes it.
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
	if c.deep {
		c.checkPages(ctx)
	}
	if err := collections.CheckAuditTriggers(c.app); err != nil {
		c.fail("folder", "%v; see docs/operations.md, \"Upgrade\"", err)
	}
	c.ok(subject, "%s; every one that stored values need is there", what)
	return func() { _ = opened.Close() } // nothing was written
}

// checkPages reads the whole database. A damage where nobody looks is otherwise first seen by the next backup.
func (c *checkup) checkPages(ctx context.Context) {
	switch err := backup.QuickCheck(ctx, c.app.ConcurrentDB()); {
	case errors.Is(err, backup.ErrDamaged):
		c.fail("folder", "the database is damaged; see docs/operations.md, \"A damaged database\"")
	case err != nil:
		c.fail("folder", "%v", err)
	}
}

const (
	// diskEmpty is what a disk must be able to take for the service to store anything for long.
	diskEmpty = 16 << 20
	// diskSpare is what it should have left beside the copy of the database that a backup needs.
	diskSpare = 100 << 20
)

func (c *checkup) checkDisk() {
	const subject = "disk"
	free, known := diskFree(nearest(c.program.dir))
	size := databaseSize(c.program.dir)
	switch {
	case !known:
		c.ok(subject, "this system does not say how much is free")
	case free < diskEmpty:
		c.fail(subject, "%s free: readings are refused when nothing is left", inMegabytes(free))
	case free < size+diskSpare:
		c.warn(subject, "%s free, too little for a backup, which needs room for a copy of the database of %s, and %s beside it",
			inMegabytes(free), inMegabytes(size), inMegabytes(diskSpare))
	default:
		c.ok(subject, "%s free", inMegabytes(free))
	}
}

// nearest is a folder, or what it would be made in.
func nearest(dir string) string {
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// databaseFiles are the database, its journal, and what its users share. The service writes to all of them.
func databaseFiles(dir string) []string {
	file := filepath.Join(dir, "data.db")
	return []string{file, file + "-wal", file + "-shm"}
}

// databaseSize is that of the database with what waits in its journal.
func databaseSize(dir string) (bytes uint64) {
	for _, name := range databaseFiles(dir)[:2] {
		if info, err := os.Stat(name); err == nil {
			bytes += uint64(info.Size()) //nolint:gosec // a size
		}
	}
	return bytes
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func inMegabytes(bytes uint64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// clockSlack is how far the clock may be behind what the database has seen.
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
		c.fail(subject, "the clock is %s behind what the database has seen: it says %s", last.Sub(c.now).Round(time.Second), local)
	default:
		c.ok(subject, "%s in %s", local, c.settings.PracticeTimeZone)
	}
}
