package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/pocketbase/dbx"
)

// Forgetful opens a database whose connections prepare each statement anew.
func Forgetful(path string) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(forgetful{connector{path: path}}), "sqlite")
}

type forgetful struct{ connector }

func (f forgetful) Connect(context.Context) (driver.Conn, error) { return f.open() }

// Shorten has a log moved when it is shorter than usual.
func (c *Checkpointer) Shorten(long, few, longest int) { c.lengths = lengths{long, few, longest} }

// Round looks at the log once, and moves it if it is too long.
func (c *Checkpointer) Round(ctx context.Context) error { return c.round(ctx) }

// Close ends what Run was not asked to.
func (c *Checkpointer) Close() error { return c.aside.Close() }

// Aside is its own connection.
func (c *Checkpointer) Aside() *dbx.DB { return c.aside }
