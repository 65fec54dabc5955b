package collections

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// ICD10Years returns, for each of the codes that is in the table, the fiscal years of the imported lists that have it, as stored.
func ICD10Years(app core.App, codes []string) (map[string]string, error) {
	rows, err := queryAll[struct {
		Code  string `db:"code"`
		Years string `db:"years"`
	}](app, "look up diagnosis codes", "SELECT code, years FROM icd10_codes WHERE code IN (SELECT value FROM json_each({:codes}))", dbx.Params{"codes": jsonList(codes)})
	years := make(map[string]string, len(rows))
	for _, row := range rows {
		years[row.Code] = row.Years
	}
	return years, err
}

// HasICD10Year reports whether a fiscal year is among stored years.
func HasICD10Year(years string, year int) bool {
	return slices.Contains(strings.Fields(years), strconv.Itoa(year))
}

// ICD10ListYears returns the fiscal years of the imported lists. It steps from one distinct value of the index to the next.
func ICD10ListYears(app core.App) (list []int, err error) {
	rows, err := queryColumn[string](app, "list the years of diagnosis codes", `WITH RECURSIVE found(years) AS (
			SELECT MIN(years) FROM icd10_codes WHERE years != ''
			UNION ALL SELECT (SELECT MIN(years) FROM icd10_codes WHERE years != '' AND years > found.years) FROM found WHERE found.years IS NOT NULL)
		SELECT years FROM found WHERE years IS NOT NULL`, nil)
	for _, row := range rows {
		for _, text := range strings.Fields(row) {
			if year, err := strconv.Atoi(text); err == nil && !slices.Contains(list, year) {
				list = append(list, year)
			}
		}
	}
	return list, err
}

// MarkICD10List records that the list of a fiscal year consists of these codes. A code that leaves its only list gets year 0, so that it does not count
// as one of no list.
func MarkICD10List(tx core.App, codes []string, year int) error {
	return exec(tx, "mark the list of a fiscal year", `UPDATE icd10_codes SET years = iif(code IN (SELECT value FROM json_each({:codes})), replace(years, {:year}, '') || {:year},
			COALESCE(NULLIF(replace(years, {:year}, ''), ''), ' 0'))
		WHERE instr(years, {:year}) > 0 OR code IN (SELECT value FROM json_each({:codes}))`, dbx.Params{"codes": jsonList(codes), "year": fmt.Sprintf(" %d", year)})
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
