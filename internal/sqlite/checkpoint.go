package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/pocketbase/dbx"
)

// longLog is how many pages wait in the log of what nobody waits for until a commit moves them.
const longLog = 3000

// lengths of a log, in pages.
type lengths struct {
	// long is how many wait until they are moved: the more, the more often a page that changed with many commits is written once.
	long int
	// few are moved in the writer's place: some milliseconds. A log is begun anew by the first who writes after all of it was moved, and while
	// readings come in it never is all without that.
	few int
	// longest is how long a log becomes before more than a few are moved in the writer's place: what comes in while the rest is moved beside the
	// writer, a tenth of a second at most.
	longest int
}

// usual is 64, 1 and 200 MB, in pages of some bytes.
func usual(page int) lengths {
	return lengths{long: 64 << 20 / page, few: 1 << 20 / page, longest: 200 << 20 / page}
}

const (
	// between two looks at the log, and after one that failed: a full disk is not written to without end.
	between      = 200 * time.Millisecond
	afterFailure = 5 * time.Second
	// flushes is how long the system gathers what is moved into the database. Of a log that grew for long it would write a gigabyte at once, and every
	// commit waits for the same disk.
	flushes = 100 * time.Millisecond
)

// Checkpointer moves what was committed from the write-ahead log into the database, beside whoever writes. SQLite leaves that to the commit that
// makes the log too long: while somebody reads for long, nothing can be moved, and once they leave one commit moves everything that piled up.
type Checkpointer struct {
	lengths // none until the first round
	path    string
	aside   *dbx.DB     // a connection of its own
	writer  dbx.Builder // the connection on which is written
	seen    int         // pages of the log at the last look
}

// NewCheckpointer opens a connection to the database at a path that is written by writer. Run closes it.
func NewCheckpointer(path string, writer dbx.Builder) *Checkpointer {
	aside := File(path, "busy_timeout(0)")
	aside.DB().SetMaxOpenConns(1)
	return &Checkpointer{path: path, aside: aside, writer: writer}
}

// Run keeps the log short until ctx is done. What fails is said once, and tried again.
func (c *Checkpointer) Run(ctx context.Context, log *slog.Logger) {
	wait, failing := between, false
	for {
		select {
		case <-ctx.Done():
			if err := c.aside.Close(); err != nil {
				log.Warn("connection for checkpoints not closed", slog.Any("error", err))
			}
			return
		case <-time.After(wait):
		}
		err := c.round(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("the database's log is not moved", slog.Any("error", err))
		}
		if wait, failing = between, err != nil; failing {
			wait = afterFailure
		}
	}
}

// round moves a log that is too long: most of it beside the writer, then the rest in the writer's place once that is little, or the log very long. What
// was committed while that place was waited for is left to the next round when it is much.
func (c *Checkpointer) round(ctx context.Context) error {
	if c.long == 0 {
		var page int
		if err := c.aside.NewQuery("PRAGMA page_size").WithContext(ctx).Row(&page); err != nil {
			return fmt.Errorf("ask how large pages are: %w", err)
		}
		c.lengths = usual(page)
	}
	pages, moved, err := checkpoint(ctx, c.aside, "NOOP")
	quiet := pages == c.seen
	c.seen = pages
	if err != nil || pages < c.long || pages == moved {
		return err
	}
	if pages >= c.longest { // somebody reads for long: the first commit after they leave would move a gigabyte
		if _, err := c.writer.NewQuery("PRAGMA wal_autocheckpoint(0)").WithContext(ctx).Execute(); err != nil {
			return fmt.Errorf("leave the log to the checkpointer: %w", err)
		}
	}
	if left := pages - moved; left >= c.long || left > c.few && quiet {
		if pages, moved, err = c.moveAside(ctx); err != nil || pages < c.long || pages-moved > c.long {
			return err // somebody else moves it, or still reads what was before
		}
	}
	if pages, moved, err = checkpoint(ctx, c.aside, "NOOP"); err != nil || pages-moved > c.few && pages < c.longest {
		return err
	}
	if pages, moved, err = checkpoint(ctx, c.writer, "NOOP"); err != nil || pages-moved > c.long {
		return err
	}
	_, _, err = checkpoint(ctx, c.writer, "PASSIVE")
	return err
}

// moveAside moves what it can beside the writer, and has it written to the disk.
func (c *Checkpointer) moveAside(ctx context.Context) (pages, moved int, err error) {
	done, flushing := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				flushing <- flush(c.path)
				return
			case <-time.After(flushes):
				_ = flush(c.path) // the last one tells
			}
		}
	}()
	pages, moved, err = checkpoint(ctx, c.aside, "PASSIVE")
	close(done)
	return pages, moved, errors.Join(err, <-flushing)
}

// flushed are the databases that flush has opened, by path. They stay open: to close a file lets go of all locks that the process has on it, SQLite's too
// (POSIX, fcntl).
var flushed sync.Map

// flush has the system write to the disk what was moved into a database. SQLite does so only once all of a log is moved, which would be in the writer's
// place, where it takes ten times as long as the moving.
func flush(path string) error {
	file, open := flushed.Load(path)
	if !open {
		opened, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // G304: the database that is served
		if err != nil {
			return fmt.Errorf("open the database to flush it: %w", err)
		}
		file, _ = flushed.LoadOrStore(path, opened) // only one goroutine flushes a database
	}
	if err := file.(*os.File).Sync(); err != nil {
		return fmt.Errorf("flush the database: %w", err)
	}
	return nil
}

// checkpoint moves the log, or with NOOP nothing. It says how many pages the log has and how many of them are in the database,
// both -1 while somebody else moves it.
func checkpoint(ctx context.Context, db dbx.Builder, mode string) (pages, moved int, err error) {
	var busy int
	if err := db.NewQuery("PRAGMA wal_checkpoint("+mode+")").WithContext(ctx).Row(&busy, &pages, &moved); err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return pages, moved, nil
}
