package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/pocketbase/dbx"
)

// OpenUncached opens a database without a statement cache in its connections.
func OpenUncached(path string) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(uncached{connector{path: path}}), "sqlite")
}

type uncached struct{ connector }

func (u uncached) Connect(context.Context) (driver.Conn, error) { return u.open() }

// SetLengths sets the thresholds of the checkpointer.
func (c *Checkpointer) SetLengths(minLength, maxTail, maxLength int) {
	c.lengths = lengths{minLength, maxTail, maxLength}
}

// Round runs one round.
func (c *Checkpointer) Round(ctx context.Context) error { return c.round(ctx) }

// Close closes the connection of a checkpointer that was not run.
func (c *Checkpointer) Close() error { return c.conn.Close() }

// Aside returns the checkpointer's own connection.
func (c *Checkpointer) Aside() *dbx.DB { return c.conn }
