package collections

import (
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
	known       map[string]*remembered
	transaction int // counts them
}

// underway is the transaction in which remembered statements run.
type underway struct{ dbx.Executor }

type remembered struct {
	*dbx.Query
	transaction int // for which it was prepared
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
		s.known = map[string]*remembered{}
	}
	s.Builder, s.db, s.under.Executor = open, builder.DB(), builder.Executor()
	s.transaction++
	return &preparedApp{App: tx, statements: s}
}

// NewQuery implements [dbx.Builder]. The end of the transaction closes what is prepared here.
func (s *Statements) NewQuery(sql string) *dbx.Query {
	query, ok := s.known[sql]
	if !ok {
		query = &remembered{Query: dbx.NewQuery(s.db, &s.under, sql)}
		s.known[sql] = query
	}
	if query.transaction != s.transaction {
		query.Prepare()
		query.transaction = s.transaction
	}
	return query.Query
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
