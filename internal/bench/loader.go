package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// chunk bounds the rows of one statement that loads.
const chunk = 500_000

// connectLoading opens a database that is thrown away if anything goes wrong while it is filled: nothing is journalled, and
// nothing waits for the disk. Whoever opens it afterwards brings a journal of their own.
func connectLoading(path string) (*dbx.DB, error) {
	pragmas := []string{"busy_timeout(10000)", "journal_mode(OFF)", "synchronous(OFF)", "foreign_keys(ON)", "cache_size(-256000)"}
	return dbx.Open("sqlite", path+"?_pragma="+strings.Join(pragmas, "&_pragma="))
}

// loader fills tables by SQL until its context ends.
type loader struct {
	ctx context.Context
	app core.App
}

// run runs statements one after the other; each may use any of the parameters.
func (l loader) run(params dbx.Params, statements ...string) error {
	for _, statement := range statements {
		used := dbx.Params{}
		for name, value := range params {
			if strings.Contains(statement, "{:"+name+"}") {
				used[name] = value
			}
		}
		if _, err := l.app.NonconcurrentDB().NewQuery(statement).Bind(used).WithContext(l.ctx).Execute(); err != nil {
			return err
		}
	}
	return nil
}

// inChunks runs a statement for the numbers from 0 to count-1, some at a time, between {:from} and {:until}, both included,
// and says now and then how far it is.
func (l loader) inChunks(count int, what, statement string, params dbx.Params) error {
	said := time.Now()
	for from := 0; from < count; from += chunk {
		params["from"], params["until"] = from, min(from+chunk, count)-1
		if err := l.run(params, statement); err != nil {
			return err
		}
		if time.Since(said) > 10*time.Second {
			fmt.Fprintf(os.Stderr, "  %d of %d %s\n", min(from+chunk, count), count, what)
			said = time.Now()
		}
	}
	return nil
}

// bare takes the indexes and triggers off a table while work fills it, and puts them back: sorting all keys at once is
// several times as fast as finding the place of each. What triggers would have done is for the work to do.
func (l loader) bare(table string, work func() error) error {
	var parts []struct{ Type, Name, SQL string }
	err := l.app.NonconcurrentDB().NewQuery(`SELECT type, name, sql FROM sqlite_master WHERE tbl_name = {:table} AND type IN ('index', 'trigger') AND sql != ''`).
		Bind(dbx.Params{"table": table}).All(&parts)
	if err != nil {
		return err
	}
	drop, restore := []string{}, []string{}
	for _, part := range parts {
		drop, restore = append(drop, "DROP "+part.Type+" "+part.Name), append(restore, part.SQL)
	}
	if err := l.run(nil, drop...); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return l.run(nil, restore...)
}

// insertRows inserts rows handed over as one list; the statement reads them from json_each({:rows}).
func (l loader) insertRows(rows any, statement string) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return l.run(dbx.Params{"rows": string(list)}, statement)
}
