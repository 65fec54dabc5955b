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

// autoCheckpointPages is the number of pages at which a commit checkpoints the log of a database without a Checkpointer.
const autoCheckpointPages = 3000

// lengths are thresholds of the length of a log, in pages.
type lengths struct {
	// minLength is the length from which the log is checkpointed: the longer it is, the more commits that change the same page share one write.
	minLength int
	// maxTail is the number of pages that may be checkpointed on the writing connection, which takes a few milliseconds. The log restarts with the first
	// write after a complete checkpoint, which under steady writes only the writing connection can complete.
	maxTail int
	// maxLength is the length from which more than maxTail pages are checkpointed on the writing connection: the pages that arrived during the concurrent
	// checkpoint, which take a tenth of a second at most.
	maxLength int
}

// defaultLengths returns thresholds of 64, 1 and 200 MB for a page size in bytes.
func defaultLengths(page int) lengths {
	return lengths{minLength: 64 << 20 / page, maxTail: 1 << 20 / page, maxLength: 200 << 20 / page}
}

const (
	// roundInterval is the time between two rounds, and retryDelay the time after a failed one, so that a full disk is not written to constantly.
	roundInterval = 200 * time.Millisecond
	retryDelay    = 5 * time.Second
	// flushInterval is the interval between syncs of the database during a checkpoint. Without them, the system could write a gigabyte at once after a long
	// checkpoint, and every commit would wait for the disk.
	flushInterval = 100 * time.Millisecond
)

// Checkpointer moves committed pages from the write-ahead log into the database, concurrently with writers. By default, SQLite does so in the commit that
// makes the log too long: during a long read nothing can be moved, and after it one commit moves all of the accumulated pages.
type Checkpointer struct {
	lengths   // zero until the first round
	path      string
	conn      *dbx.DB     // a separate connection
	writer    dbx.Builder // the writing connection
	lastPages int         // pages of the log in the last round
}

// NewCheckpointer returns a checkpointer with its own connection to the database at a path; writer is the writing connection. Run closes the connection.
func NewCheckpointer(path string, writer dbx.Builder) *Checkpointer {
	conn := File(path, "busy_timeout(0)")
	conn.DB().SetMaxOpenConns(1)
	return &Checkpointer{path: path, conn: conn, writer: writer}
}

// Run checkpoints the log until ctx is done. It retries after a failure, and logs only the first of consecutive failures.
func (c *Checkpointer) Run(ctx context.Context, log *slog.Logger) {
	wait, failing := roundInterval, false
	for {
		select {
		case <-ctx.Done():
			if err := c.conn.Close(); err != nil {
				log.Warn("checkpointer could not close its connection", slog.Any("error", err))
			}
			return
		case <-time.After(wait):
		}
		err := c.round(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("checkpointer could not checkpoint the write-ahead log, and retries", slog.Any("error", err))
		}
		if wait, failing = roundInterval, err != nil; failing {
			wait = retryDelay
		}
	}
}

// round checkpoints a log that is too long: most of it concurrently with the writer, then the rest on the writing connection, if few pages are left or the
// log is very long. If many pages were committed while it waited for the writing connection, it leaves them to the next round.
func (c *Checkpointer) round(ctx context.Context) error {
	if c.minLength == 0 {
		var page int
		if err := c.conn.NewQuery("PRAGMA page_size").WithContext(ctx).Row(&page); err != nil {
			return fmt.Errorf("read the page size: %w", err)
		}
		c.lengths = defaultLengths(page)
	}
	pages, moved, err := checkpoint(ctx, c.conn, "NOOP")
	quiet := pages == c.lastPages
	c.lastPages = pages
	if err != nil || pages < c.minLength || pages == moved {
		return err
	}
	if pages >= c.maxLength { // during a long read: the first commit after it would move a gigabyte
		if _, err := c.writer.NewQuery("PRAGMA wal_autocheckpoint(0)").WithContext(ctx).Execute(); err != nil {
			return fmt.Errorf("turn off automatic checkpoints: %w", err)
		}
	}
	if left := pages - moved; left >= c.minLength || left > c.maxTail && quiet {
		if pages, moved, err = c.checkpointConcurrently(ctx); err != nil || pages < c.minLength || pages-moved > c.minLength {
			return err // another connection checkpoints, or a read still needs the log
		}
	}
	if pages, moved, err = checkpoint(ctx, c.conn, "NOOP"); err != nil || pages-moved > c.maxTail && pages < c.maxLength {
		return err
	}
	if pages, moved, err = checkpoint(ctx, c.writer, "NOOP"); err != nil || pages-moved > c.minLength {
		return err
	}
	_, _, err = checkpoint(ctx, c.writer, "PASSIVE")
	return err
}

// checkpointConcurrently moves as many pages as possible on its own connection, and syncs the database.
func (c *Checkpointer) checkpointConcurrently(ctx context.Context) (pages, moved int, err error) {
	done, flushing := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				flushing <- flush(c.path)
				return
			case <-time.After(flushInterval):
				_ = flush(c.path) // the last flush returns the error
			}
		}
	}()
	pages, moved, err = checkpoint(ctx, c.conn, "PASSIVE")
	close(done)
	return pages, moved, errors.Join(err, <-flushing)
}

// openFiles holds the files that flush has opened, by path. They stay open, because closing a file releases all locks of the process on it, including
// SQLite's (POSIX, fcntl).
var openFiles sync.Map

// flush syncs a database file. SQLite does so only after a complete checkpoint, which would be on the writing connection, where the sync takes ten times as
// long as moving the pages.
func flush(path string) error {
	file, open := openFiles.Load(path)
	if !open {
		opened, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // G304: the path of the service's database
		if err != nil {
			return fmt.Errorf("open the database to flush it: %w", err)
		}
		file, _ = openFiles.LoadOrStore(path, opened) // only one goroutine flushes a database
	}
	if err := file.(*os.File).Sync(); err != nil {
		return fmt.Errorf("flush the database: %w", err)
	}
	return nil
}

// checkpoint runs a checkpoint; NOOP moves nothing. It returns the pages of the log and how many of them are in the database,
// both -1 while another connection runs a checkpoint.
func checkpoint(ctx context.Context, db dbx.Builder, mode string) (pages, moved int, err error) {
	var busy int
	if err := db.NewQuery("PRAGMA wal_checkpoint("+mode+")").WithContext(ctx).Row(&busy, &pages, &moved); err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return pages, moved, nil
}
