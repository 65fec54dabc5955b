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
