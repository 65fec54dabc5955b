package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Payer is who pays claims.
type Payer struct {
	ID     string `db:"id"`
	Name   string `db:"name"`
	Code   string `db:"payer_code"`
	Active bool   `db:"is_active"`
}

func (p Payer) Number() int64 { return Number(p.ID) } // the payer's public id

// ListPayers lists every payer by name.
func ListPayers(app core.App) (list []Payer, err error) {
	err = app.DB().Select("id", "name", "payer_code", "is_active").From(Payers).OrderBy("name", "id").All(&list)
	return list, wrap(err, "list payers")
}

// FindPayer finds a payer by number.
func FindPayer(app core.App, number int64) (p Payer, err error) {
	err = app.DB().Select("id", "name", "payer_code", "is_active").From(Payers).Where(dbx.HashExp{"id": NumberID(number)}).One(&p)
	return p, wrap(err, "find payer")
}

// AddPayer stores a payer with the next number; taken when another has the code.
func AddPayer(tx core.App, name, code string, active bool, now time.Time) (p Payer, taken bool, err error) {
	if err = tx.DB().NewQuery("SELECT EXISTS (SELECT 1 FROM payers WHERE payer_code = {:code} COLLATE NOCASE)").
		Bind(dbx.Params{"code": code}).Row(&taken); err != nil || taken {
		return p, taken, err
	}
	record, err := New(tx, Payers)
	if err != nil {
		return p, false, err
	}
	if record.Id, err = NextID(tx, Payers); err != nil {
		return p, false, err
	}
	record.Load(map[string]any{"name": name, "payer_code": code, "is_active": active, "created_at": Instant(now)})
	if err := tx.Save(record); err != nil {
		return p, false, fmt.Errorf("store payer: %w", err)
	}
	return Payer{ID: record.Id, Name: name, Code: code, Active: active}, false, nil
}

// PayerNameOfEntries is the name that entries of a payer were made with; "" when there are none.
func PayerNameOfEntries(app core.App, payerID string) (string, error) {
	return queryValue[string](app, "find the name of a payer", "SELECT COALESCE((SELECT payer_name FROM billing_entries WHERE payer = {:payer} LIMIT 1), '')",
		dbx.Params{"payer": payerID})
}
