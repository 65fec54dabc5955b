package collections

import (
	"context"
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// SearchRecords returns the ids of at most that many records with a text in a readable column, newest first: words anywhere, ids and times
// from the start, numbers as a whole. It may scan the whole collection, so it stops when ctx is canceled.
func SearchRecords(ctx context.Context, app core.App, collection *core.Collection, text string, most int) (ids []string, err error) {
	var holds []dbx.Expression
	for _, field := range collection.Fields {
		if hold := fieldCondition(field, text); hold != nil {
			holds = append(holds, hold)
		}
	}
	err = app.DB().Select("id").From(collection.Name).Where(dbx.Or(holds...)).OrderBy("rowid DESC").Limit(int64(most)).WithContext(ctx).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("search the open columns of %s: %w", collection.Name, err)
	}
	return ids, nil
}

// fieldCondition compares a column with a text. It returns nil for columns that are not searched: ciphertext, secrets, flags, relations, and
// select fields (see [MatchingChoices]).
func fieldCondition(field core.Field, text string) dbx.Expression {
	name := field.GetName()
	if field.GetHidden() {
		return nil
	}
	switch field.Type() {
	case core.FieldTypeText:
		if name == core.FieldNameId || strings.HasPrefix(field.(*core.TextField).Pattern, datePattern) {
			return like(name, escapeLike(text)+"%")
		}
		return like(name, "%"+escapeLike(text)+"%")
	case core.FieldTypeEmail, core.FieldTypeURL, core.FieldTypeJSON, core.FieldTypeEditor:
		return like(name, "%"+escapeLike(text)+"%")
	case core.FieldTypeNumber, OptionalNumberFieldType:
		return like(name, escapeLike(text))
	}
	return nil
}

// like compares a column with a pattern. dbx's own LIKE has no ESCAPE clause, so SQLite would not find an underscore.
func like(column, pattern string) dbx.Expression {
	param := "like_" + column // unique within a query
	return dbx.NewExp("[["+column+"]] LIKE {:"+param+`} ESCAPE '\'`, dbx.Params{param: pattern})
}

// escapeLike escapes the special characters of LIKE.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// datePattern is the start of the patterns of date and time columns.
const datePattern = `^\d{4}-\d{2}`

// Choice is one value of a select field.
type Choice struct{ Column, Value string }

// MatchingChoices returns the values of a collection's select fields that contain a text.
func MatchingChoices(collection *core.Collection, text string) (choices []Choice) {
	for _, field := range collection.Fields {
		list, ok := field.(*core.SelectField)
		if !ok || list.Hidden {
			continue
		}
		for _, value := range list.Values {
			if strings.Contains(strings.ToLower(value), strings.ToLower(text)) {
				choices = append(choices, Choice{list.Name, value})
			}
		}
	}
	return choices
}

// ColumnsReferencing returns the columns of a collection that contain ids of another one; for the collection itself, its id.
func ColumnsReferencing(app core.App, collection *core.Collection, other string) (columns []string, err error) {
	if collection.Name == other {
		return []string{core.FieldNameId}, nil
	}
	named, err := app.FindCachedCollectionByNameOrId(other)
	if err != nil {
		return nil, fmt.Errorf("find the collection %s: %w", other, err)
	}
	for _, field := range collection.Fields {
		relation, ok := field.(*core.RelationField)
		if ok && relation.CollectionId == named.Id || other == Patients && field.GetName() == ColumnPatient {
			columns = append(columns, field.GetName())
		}
	}
	return columns, nil
}

// PatientIDsByIndex returns the patients, in any state, with a blind index of a sealed column.
func PatientIDsByIndex(app core.App, column, index string) (ids []string, err error) {
	err = app.DB().Select("id").From(Patients).Where(dbx.HashExp{column + "_index": index}).OrderBy("id").Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("find patients by the index of %s: %w", column, err)
	}
	return ids, nil
}
