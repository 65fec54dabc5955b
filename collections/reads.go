package collections

import (
	"sync"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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
