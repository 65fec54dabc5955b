package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/backup"
)

// exportRun is one run of the export: its destination and the counts of what it wrote.
type exportRun struct {
	engine      *Engine
	destination *backup.BlobStore
	now         time.Time
	throttle    *async.Throttle
	done        Done
}

// fileName returns the file name for a day, partitioned as in Hive by practice, table and date.
func (e *Engine) fileName(t *collections.WarehouseTable, day time.Time) string {
	return fmt.Sprintf("practice=%s/table=%s/date=%s/rows.%s", e.options.Practice, t.Name, day.Format(time.DateOnly), extensions[e.options.Format])
}

// errNoRows stops the writing of a file that would be empty.
var errNoRows = errors.New("the day has no rows")

// write writes the file of a day, or removes it if the day has no rows left. A row that changes during the run is dated later than the run, so the
// next run writes the file again: the pages need no common snapshot, and no read transaction outlasts a page.
func (r *exportRun) write(ctx context.Context, app core.App, t *collections.WarehouseTable, day time.Time) error {
	page, err := t.Page(app, day, collections.StartOfNextDay(day), collections.WarehouseRow{}, pageRows)
	if err != nil {
		return err
	}
	name, rows := r.engine.fileName(t, day), 0
	if len(page) > 0 {
		err = r.destination.Write(ctx, name, func(w io.Writer) (err error) {
			rows, err = r.writeRows(ctx, app, w, t, day, page)
			if err == nil && rows == 0 {
				err = errNoRows
			}
			return err
		})
	}
	switch {
	case rows == 0 && (err == nil || errors.Is(err, errNoRows)):
		err = r.destination.Remove(ctx, name)
	case err == nil:
		r.done.Files, r.done.Rows = r.done.Files+1, r.done.Rows+rows
	}
	if err != nil {
		return fmt.Errorf("export %s of %s: %w", t.Name, day.Format(time.DateOnly), err)
	}
	return nil
}

// writeRows writes the rows of a day page by page.
func (r *exportRun) writeRows(ctx context.Context, app core.App, w io.Writer, t *collections.WarehouseTable, day time.Time, page []collections.WarehouseRow) (rows int, err error) {
	out, err := r.engine.newRowWriter(app, w, t, r.now)
	if err != nil {
		return 0, err
	}
	for {
		n, err := out.add(page)
		if err != nil {
			return rows, err
		}
		if rows += n; len(page) < pageRows {
			return rows, out.finish()
		}
		if err := r.throttle.Rest(ctx); err != nil {
			return rows, err
		}
		if page, err = t.Page(app, day, collections.StartOfNextDay(day), page[len(page)-1], pageRows); err != nil {
			return rows, err
		}
	}
}
