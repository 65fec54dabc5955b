package collections

import (
	"sync"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// WithStatementCache returns the app of a transaction with a new [StatementCache], so a statement that runs many times is parsed once. The
// cache lives as long as the transaction and serves one goroutine. PocketBase's own queries (Save, RecordQuery) bypass it.
func WithStatementCache(tx core.App) core.App { return new(StatementCache).In(tx) }

// StatementCache keeps parsed statements across the transactions of one goroutine, so dbx parses each text only once. It never evicts, so
// texts must be few. The zero value is ready to use.
type StatementCache struct {
	dbx.Builder // of the current transaction
	db          *dbx.DB
	conn        rawConn
	queries     map[string]*dbx.Query
}

// In returns the app of a transaction that uses this cache. The previous transaction must have ended.
func (s *StatementCache) In(tx core.App) core.App {
	if _, prepared := tx.(*cachedTxApp); prepared {
		return tx
	}
	open, ok := tx.NonconcurrentDB().(*dbx.Tx)
	if !ok {
		return tx // not a transaction
	}
	builder, ok := open.Builder.(interface {
		DB() *dbx.DB
		Executor() dbx.Executor
	})
	if !ok {
		return tx
	}
	if s.queries == nil {
		s.queries = map[string]*dbx.Query{}
	}
	s.Builder, s.db = open, builder.DB()
	s.conn.begin(builder.Executor())
	return &cachedTxApp{App: tx, statements: s}
}

// NewQuery implements [dbx.Builder]. Each connection also caches the prepared statement (internal/sqlite).
func (s *StatementCache) NewQuery(sql string) *dbx.Query {
	query, ok := s.queries[sql]
	if !ok {
		query = dbx.NewQuery(s.db, &s.conn, sql)
		s.queries[sql] = query
	}
	return query
}

type cachedTxApp struct {
	core.App
	statements *StatementCache
}

// DB implements [core.App]. A transaction has one connection for reads and writes.
func (a *cachedTxApp) DB() dbx.Builder { return a.statements }

// NonconcurrentDB implements [core.App].
func (a *cachedTxApp) NonconcurrentDB() dbx.Builder { return a.statements }

// ConcurrentDB implements [core.App].
func (a *cachedTxApp) ConcurrentDB() dbx.Builder { return a.statements }

// RunInTransaction implements [core.App]. The app is already in a transaction.
func (a *cachedTxApp) RunInTransaction(work func(core.App) error) error { return work(a) }

// ReadCache keeps parsed queries of requests outside a transaction: dbx parses each text once, and each connection prepares it once. Texts
// must be few and only select. The zero value is ready to use, and safe for concurrent use.
type ReadCache struct {
	lock    sync.RWMutex
	db      *dbx.DB
	queries map[string]*dbx.Query
}

// In returns the app with this cache for [core.App.DB]. The app of a transaction is returned unchanged.
func (r *ReadCache) In(app core.App) core.App {
	if db, pool := app.ConcurrentDB().(*dbx.DB); pool && !app.IsTransactional() {
		return &cachedReadApp{app, cachedReader{db, r}}
	}
	return app
}

// query returns a copy of the cached query, for one use.
func (r *ReadCache) query(db *dbx.DB, text string) *dbx.Query {
	r.lock.RLock()
	cached := r.queries[text]
	current := r.db == db
	r.lock.RUnlock()
	if cached == nil || !current {
		cached = r.prepare(db, text)
	}
	query := *cached // a copy, so that Bind does not change the cached one
	return &query
}

func (r *ReadCache) prepare(db *dbx.DB, text string) *dbx.Query {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.db != db { // the database was reopened, which closed all prepared statements
		r.db, r.queries = db, map[string]*dbx.Query{}
	}
	if cached := r.queries[text]; cached != nil {
		return cached
	}
	query := db.NewQuery(text)
	if query.Prepare(); query.LastError == nil { // on failure the caller gets the error and the next call retries
		r.queries[text] = query
	}
	return query
}

type cachedReadApp struct {
	core.App
	reading cachedReader
}

// DB implements [core.App].
func (a *cachedReadApp) DB() dbx.Builder { return a.reading }

type cachedReader struct {
	*dbx.DB
	reads *ReadCache
}

// NewQuery implements [dbx.Builder].
func (r cachedReader) NewQuery(text string) *dbx.Query { return r.reads.query(r.DB, text) }
