package collections

import (
	"context"
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RecordsHolding are the ids of at most so many records of a collection, the newest first, of which a column that lies open holds a text: words
// anywhere, an id or a time at its beginning, a number as a whole. All of a collection may have to be read, so it ends with whoever asks.
func RecordsHolding(ctx context.Context, app core.App, collection *core.Collection, text string, most int) (ids []string, err error) {
	var holds []dbx.Expression
	for _, field := range collection.Fields {
		if hold := holding(field, text); hold != nil {
			holds = append(holds, hold)
		}
	}
	err = app.DB().Select("id").From(collection.Name).Where(dbx.Or(holds...)).OrderBy("rowid DESC").Limit(int64(most)).WithContext(ctx).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("search the open columns of %s: %w", collection.Name, err)
	}
	return ids, nil
}

// holding compares a column with a text; nil where nobody would look for it: in ciphertext, secrets, flags, ids of other records, and lists of values,
// for which see [ChoicesHolding].
func holding(field core.Field, text string) dbx.Expression {
	name := field.GetName()
	if field.GetHidden() {
		return nil
	}
	switch field.Type() {
	case core.FieldTypeText:
		if name == core.FieldNameId || strings.HasPrefix(field.(*core.TextField).Pattern, datePattern) {
			return like(name, literal(text)+"%")
		}
		return like(name, "%"+literal(text)+"%")
	case core.FieldTypeEmail, core.FieldTypeURL, core.FieldTypeJSON, core.FieldTypeEditor:
		return like(name, "%"+literal(text)+"%")
	case core.FieldTypeNumber, OptionalNumberFieldType:
		return like(name, literal(text))
	}
	return nil
}

// like compares a column with a pattern. That of dbx names no sign of escape, without which SQLite knows none: it finds no underscore.
func like(column, pattern string) dbx.Expression {
	param := "like_" + column // one for each comparison of a query
	return dbx.NewExp("[["+column+"]] LIKE {:"+param+`} ESCAPE '\'`, dbx.Params{param: pattern})
}

// literal is a text as a part of a pattern, where it means nothing but itself.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// datePattern begins the patterns of columns that hold days and times.
const datePattern = `^\d{4}-\d{2}`

// Choice is a value that a column may have, of a list.
type Choice struct{ Column, Value string }

// ChoicesHolding are the values of a collection's lists of values that hold a text.
func ChoicesHolding(collection *core.Collection, text string) (choices []Choice) {
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

// ColumnsNaming are the columns of a collection that hold ids of another one; of the other one itself, its id.
func ColumnsNaming(app core.App, collection *core.Collection, other string) (columns []string, err error) {
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

// PatientIDsByIndex are the ids of the patients of any state whose sealed column has a blind index.
func PatientIDsByIndex(app core.App, column, index string) (ids []string, err error) {
	err = app.DB().Select("id").From(Patients).Where(dbx.HashExp{column + "_index": index}).OrderBy("id").Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("find patients by the index of %s: %w", column, err)
	}
	return ids, nil
}
