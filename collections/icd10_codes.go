package collections

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ICD10Code is a diagnosis code.
type ICD10Code struct {
	Code        string `db:"code" json:"code"`
	Description string `db:"description" json:"description"`
	Category    string `db:"category" json:"category"`
}

// SearchICD10 returns the codes that contain the text in their code (ignoring dots) or description; "" matches all. category narrows unless
// "".
func SearchICD10(app core.App, text, code, category string, limit, offset int) (list []ICD10Code, total int, err error) {
	where := dbx.And()
	if text != "" {
		where = dbx.Or(
			dbx.NewExp("instr(REPLACE(lower(code), '.', ''), lower({:code})) > 0 AND {:code} != ''", dbx.Params{"code": code}),
			dbx.NewExp("instr(lower(description), lower({:text})) > 0", dbx.Params{"text": text}))
	}
	if category != "" {
		where = dbx.And(where, dbx.NewExp("category = {:category} COLLATE NOCASE", dbx.Params{"category": category}))
	}
	if total, err = countOf(app.DB().Select("COUNT(*)").From(ICD10Codes).Where(where)); err != nil {
		return nil, 0, err
	}
	err = app.DB().Select("code", "description", "category").From(ICD10Codes).Where(where).OrderBy("code").Limit(int64(limit)).Offset(int64(offset)).All(&list)
	return list, total, wrap(err, "list diagnosis codes")
}

// ExistingICD10 returns which of the codes are in the table.
func ExistingICD10(app core.App, codes []string) (map[string]bool, error) {
	found, err := queryColumn[string](app, "look up diagnosis codes", "SELECT code FROM icd10_codes WHERE code IN (SELECT value FROM json_each({:codes}))",
		dbx.Params{"codes": jsonList(codes)})
	return setOf(found), err
}

// StoreICD10 adds or updates codes with one statement.
func StoreICD10(tx core.App, codes []ICD10Code) error {
	list, err := json.Marshal(codes)
	if err != nil {
		return fmt.Errorf("encode codes: %w", err)
	}
	return exec(tx, "store diagnosis codes", `INSERT INTO icd10_codes (code, description, category)
		SELECT value ->> 'code', value ->> 'description', value ->> 'category' FROM json_each({:codes}) WHERE TRUE
		ON CONFLICT (code) DO UPDATE SET description = excluded.description, category = excluded.category`, dbx.Params{"codes": string(list)})
}

// CountICD10 counts the diagnosis codes.
func CountICD10(app core.App) (int, error) {
	return countOf(app.DB().Select("COUNT(*)").From(ICD10Codes))
}

// ListICD10 returns all diagnosis codes in order.
func ListICD10(app core.App) (list []ICD10Code, err error) {
	err = app.DB().Select("code", "description", "category").From(ICD10Codes).OrderBy("code").All(&list)
	return list, wrap(err, "list diagnosis codes")
}
