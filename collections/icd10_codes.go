package collections

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ICD10Code is a diagnosis code of the table.
type ICD10Code struct {
	Code        string `db:"code" json:"code"`
	Description string `db:"description" json:"description"`
	Category    string `db:"category" json:"category"`
}

// SearchICD10 finds codes whose code (dots aside) or description holds the text, of one category when given; "" finds all.
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

// KnownICD10 tells which of the codes stand in the table.
func KnownICD10(app core.App, codes []string) (map[string]bool, error) {
	found, err := queryColumn[string](app, "look up diagnosis codes", "SELECT code FROM icd10_codes WHERE code IN (SELECT value FROM json_each({:codes}))",
		dbx.Params{"codes": jsonList(codes)})
	return setOf(found), err
}

// StoreICD10 adds codes, or gives known ones their new texts, in one statement for many.
func StoreICD10(tx core.App, codes []ICD10Code) error {
	list, err := json.Marshal(codes)
	if err != nil {
		return fmt.Errorf("encode codes: %w", err)
	}
	return exec(tx, "store diagnosis codes", `INSERT INTO icd10_codes (code, description, category)
		SELECT value ->> 'code', value ->> 'description', value ->> 'category' FROM json_each({:codes}) WHERE TRUE
		ON CONFLICT (code) DO UPDATE SET description = excluded.description, category = excluded.category`, dbx.Params{"codes": string(list)})
}
