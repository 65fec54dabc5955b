package collections

import (
	"sync"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Prepared returns the app of a transaction with a memory for its statements: the database reads the text of each only
// once, however often it runs. It is for those who do the same many times in one transaction; it lives no longer than
// that, and serves one goroutine. What PocketBase itself asks (Save, RecordQuery) goes by as ever.
func Prepared(tx core.App) core.App { return new(Statements).In(tx) }

// Statements is the memory of [Prepared] for one transaction after the other of the same goroutine, so that dbx, too, looks through the text
// of a statement only once. It remembers every text it sees, so texts must be few. The zero value is ready.
type Statements struct {
	dbx.Builder // of the transaction under way
	db          *dbx.DB
	under       underway
	known       map[string]*dbx.Query
}

// In returns the app of a transaction with this memory; the transaction before must be over.
func (s *Statements) In(tx core.App) core.App {
	if _, prepared := tx.(*preparedApp); prepared {
		return tx
	}
	open, ok := tx.NonconcurrentDB().(*dbx.Tx)
	if !ok {
		return tx // no transaction
	}
	builder, ok := open.Builder.(interface {
		DB() *dbx.DB
		Executor() dbx.Executor
	})
	if !ok {
		return tx
	}
	if s.known == nil {
		s.known = map[string]*dbx.Query{}
	}
	s.Builder, s.db = open, builder.DB()
	s.under.enter(builder.Executor())
	return &preparedApp{App: tx, statements: s}
}

// NewQuery implements [dbx.Builder]. Each connection remembers what it has understood of a text (internal/sqlite).
func (s *Statements) NewQuery(sql string) *dbx.Query {
	query, ok := s.known[sql]
	if !ok {
		query = dbx.NewQuery(s.db, &s.under, sql)
		s.known[sql] = query
	}
	return query
}

type preparedApp struct {
	core.App
	statements *Statements
}

// DB implements [core.App]: a transaction has one connection for everything.
func (a *preparedApp) DB() dbx.Builder { return a.statements }

// NonconcurrentDB implements [core.App].
func (a *preparedApp) NonconcurrentDB() dbx.Builder { return a.statements }

// ConcurrentDB implements [core.App].
func (a *preparedApp) ConcurrentDB() dbx.Builder { return a.statements }

// RunInTransaction implements [core.App]: this is one already.
func (a *preparedApp) RunInTransaction(work func(core.App) error) error { return work(a) }

// Reads is a memory for what requests ask again and again outside of a transaction: dbx looks through the text of each question once, and
// each connection reads it once. It is for texts that are few and only select. The zero value is ready, and serves many goroutines.
type Reads struct {
	lock  sync.RWMutex
	db    *dbx.DB
	known map[string]*dbx.Query
}

// In returns the app with this memory for [core.App.DB]; a transaction has its own, and is returned as it is.
func (r *Reads) In(app core.App) core.App {
	if db, pool := app.ConcurrentDB().(*dbx.DB); pool && !app.IsTransactional() {
		return &readingApp{app, reading{db, r}}
	}
	return app
}

// query is the question with this text, to be asked once.
func (r *Reads) query(db *dbx.DB, text string) *dbx.Query {
	r.lock.RLock()
	known := r.known[text]
	current := r.db == db
	r.lock.RUnlock()
	if known == nil || !current {
		known = r.remember(db, text)
	}
	own := *known // which has no parameters, so that Bind leaves it so
	return &own
}

func (r *Reads) remember(db *dbx.DB, text string) *dbx.Query {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.db != db { // it was opened anew, which closed what was prepared
		r.db, r.known = db, map[string]*dbx.Query{}
	}
	if known := r.known[text]; known != nil {
		return known
	}
	query := db.NewQuery(text)
	if query.Prepare(); query.LastError == nil { // else it is told by whoever asks, and tried again
		r.known[text] = query
	}
	return query
}

type readingApp struct {
	core.App
	reading reading
}

// DB implements [core.App].
func (a *readingApp) DB() dbx.Builder { return a.reading }

type reading struct {
	*dbx.DB
	reads *Reads
}

// NewQuery implements [dbx.Builder].
func (r reading) NewQuery(text string) *dbx.Query { return r.reads.query(r.DB, text) }
