package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pocketbase/dbx"
)

const (
	// longLog is how many pages of a log are too many. A log is begun anew by the first who writes after all of it was moved. As many may be moved
	// in the writer's place: some hundredths of a second.
	longLog = 3000
	// few are not worth a round beside the writer.
	few = 256
	// between two looks at the log, and after one that failed: a full disk is not written to without end.
	between      = 200 * time.Millisecond
	afterFailure = 5 * time.Second
)

// Checkpointer moves what was committed from the write-ahead log into the database, beside whoever writes. SQLite leaves that to the commit that
// makes the log too long: while somebody reads for long, nothing can be moved, and once they leave one commit moves everything that piled up.
type Checkpointer struct {
	aside  *dbx.DB     // a connection of its own
	writer dbx.Builder // the connection on which is written
}

// NewCheckpointer opens a connection to the database at a path that is written by writer. Run closes it.
func NewCheckpointer(path string, writer dbx.Builder) *Checkpointer {
	aside := File(path, "busy_timeout(0)")
	aside.DB().SetMaxOpenConns(1)
	return &Checkpointer{aside: aside, writer: writer}
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

// round moves a log that is too long: the most of it beside the writer, then the rest in the writer's place, or it would never be all while readings
// come in. What was committed while that place was waited for is left to the next round when it is much.
func (c *Checkpointer) round(ctx context.Context) error {
	pages, moved, err := checkpoint(ctx, c.aside, "NOOP")
	if err != nil || pages < longLog || pages == moved {
		return err
	}
	if pages-moved > few {
		if pages, moved, err = checkpoint(ctx, c.aside, "PASSIVE"); err != nil || pages < longLog || pages-moved > longLog {
			return err // somebody else moves it, or still reads what was before
		}
	}
	if pages, moved, err = checkpoint(ctx, c.writer, "NOOP"); err != nil || pages-moved > longLog {
		return err
	}
	_, _, err = checkpoint(ctx, c.writer, "PASSIVE")
	return err
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
