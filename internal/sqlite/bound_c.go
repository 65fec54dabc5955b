//go:build sqlite_in_c && cgo

package sqlite

// #include "bound.h"
// #cgo noescape run_bound
import "C"

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"runtime"
	"unsafe"

	"github.com/mattn/go-sqlite3"
)

// argBuffer is the buffer in which the values of a statement are passed to C; each connection has its own.
type argBuffer struct {
	values []C.struct_bound
	bytes  []byte
}

// pack copies values into the buffer, and returns false if one has an unsupported type.
func (b *argBuffer) pack(args []driver.NamedValue) bool {
	b.values, b.bytes = b.values[:0], b.bytes[:0]
	for i := range args {
		value := C.struct_bound{}
		switch v := args[i].Value.(type) {
		case nil:
		case int64:
			value.kind, value.number = C.BOUND_NUMBER, C.longlong(v)
		case bool:
			value.kind = C.BOUND_NUMBER
			if v {
				value.number = 1
			}
		case float64:
			value.kind, value.real = C.BOUND_REAL, C.double(v)
		case string:
			value.kind, value.number = C.BOUND_TEXT, C.longlong(len(v))
			b.bytes = append(b.bytes, v...)
		case []byte:
			if v != nil {
				value.kind, value.number = C.BOUND_BLOB, C.longlong(len(v))
				b.bytes = append(b.bytes, v...)
			}
		default:
			return false
		}
		if args[i].Name != "" || args[i].Ordinal != i+1 {
			return false
		}
		b.values = append(b.values, value)
	}
	return true
}

// handleOf returns the sqlite3_stmt of a driver's statement, which the driver does not export; nil if the driver stores it in another field.
func handleOf(s *sqlite3.SQLiteStmt) unsafe.Pointer {
	field := reflect.ValueOf(s).Elem().FieldByName("s")
	if field.Kind() != reflect.Pointer {
		return nil
	}
	return field.UnsafePointer()
}

// setLockTimeout replaces SQLite's waiting for locks by ours, with the timeout that the connection has.
func setLockTimeout(conn *sqlite3.SQLiteConn) error {
	opened, err := conn.Prepare("PRAGMA busy_timeout")
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // it only reads
	inner, ok := opened.(*sqlite3.SQLiteStmt)
	if !ok || handleOf(inner) == nil {
		return nil // SQLite's own waiting works too, except beside a service under full load
	}
	rows, err := inner.Query(nil)
	if err != nil {
		return err
	}
	timeout := []driver.Value{int64(0)}
	if err := errors.Join(rows.Next(timeout), rows.Close()); err != nil {
		return err
	}
	milliseconds, _ := timeout[0].(int64)
	if C.set_lock_timeout((*C.sqlite3_stmt)(handleOf(inner)), C.int(milliseconds)) != 0 {
		return errors.New("SQLite rejected the busy handler")
	}
	return nil
}

// runBound implements [boundRunner]. The driver would call C for each value.
func (p prepared) runBound(args []driver.NamedValue) (rows int64, done bool, err error) {
	if p.returnsRows || p.handle == nil || !p.args.pack(args) {
		return 0, false, nil
	}
	b, statement := p.args, (*C.sqlite3_stmt)(p.handle)
	b.bytes = append(b.bytes, 0) // an empty text needs a valid address
	b.values = append(b.values, C.struct_bound{})
	var changes C.longlong
	failed := C.run_bound(statement, &b.values[0], C.int(len(args)), (*C.char)(unsafe.Pointer(&b.bytes[0])), &changes)
	if failed != 0 {
		err = lastError(statement)
	}
	runtime.KeepAlive(p.SQLiteStmt)
	return int64(changes), true, err
}

// sqliteError is an SQLite error with its text, which cannot be set on the driver's error type.
type sqliteError struct {
	number sqlite3.Error
	text   string
}

func (e sqliteError) Error() string { return e.text }

func (e sqliteError) Unwrap() error { return e.number }

func lastError(statement *C.sqlite3_stmt) error {
	var text *C.char
	extended := C.error_of(statement, &text)
	return sqliteError{sqlite3.Error{Code: sqlite3.ErrNo(extended & 0xff), ExtendedCode: sqlite3.ErrNoExtended(extended)}, C.GoString(text)}
}
