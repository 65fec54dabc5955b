package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Prepared returns the app of a transaction with a memory for its statements: the database reads the text of each only
// once, however often it runs. It is for those who do the same many times in one transaction; it lives no longer than
// that, and serves one goroutine. What PocketBase itself asks (Save, RecordQuery) goes by as ever.
func Prepared(tx core.App) core.App {
	return &preparedApp{App: tx, statements: &statements{Builder: tx.NonconcurrentDB(), known: map[string]*dbx.Query{}}}
}

type preparedApp struct {
	core.App
	statements *statements
}

// DB implements [core.App]: a transaction has one connection for everything.
func (a *preparedApp) DB() dbx.Builder { return a.statements }

// NonconcurrentDB implements [core.App].
func (a *preparedApp) NonconcurrentDB() dbx.Builder { return a.statements }

// ConcurrentDB implements [core.App].
func (a *preparedApp) ConcurrentDB() dbx.Builder { return a.statements }

// RunInTransaction implements [core.App]: this is one already.
func (a *preparedApp) RunInTransaction(work func(core.App) error) error { return work(a) }

type statements struct {
	dbx.Builder
	known map[string]*dbx.Query
}

// NewQuery implements [dbx.Builder]. The end of the transaction closes what is prepared here.
func (s *statements) NewQuery(sql string) *dbx.Query {
	query, ok := s.known[sql]
	if !ok {
		query = s.Builder.NewQuery(sql).Prepare()
		s.known[sql] = query
	}
	return query
}
