package collections

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Conditions narrow a list; each method adds nothing for an empty argument.
type Conditions []dbx.Expression

// Equal keeps rows with the value in a column, unless it is "".
func (c Conditions) Equal(column, value string) Conditions {
	if value == "" {
		return c
	}
	return append(c, dbx.HashExp{column: value})
}

// Is keeps rows with the value of a flag, unless nil. The value is a literal, because SQLite does not use partial indexes for bound values.
func (c Conditions) Is(column string, value *bool) Conditions {
	if value == nil {
		return c
	}
	return append(c, dbx.NewExp(fmt.Sprintf("%s = %t", column, *value)))
}

// Between keeps rows with a time in the range, both ends inclusive; a zero end is open.
func (c Conditions) Between(column string, from, to time.Time) Conditions {
	if !from.IsZero() {
		c = append(c, dbx.NewExp(column+" >= {:from}", dbx.Params{"from": FormatInstant(from)}))
	}
	if !to.IsZero() {
		c = append(c, dbx.NewExp(column+" <= {:to}", dbx.Params{"to": FormatInstant(to)}))
	}
	return c
}

// OnCareTeamOf keeps rows about patients of a user's care teams, unless "".
func (c Conditions) OnCareTeamOf(userID string) Conditions {
	if userID == "" {
		return c
	}
	return append(c, OnCareTeam("patient", userID))
}

// PageOfUndeleted returns a page of records in an order, and the total, without rows of deleted patients. Those are few and found by patient,
// so it counts and subtracts them instead of counting the rest.
func (c Conditions) PageOfUndeleted(app core.App, collection, order string, offset, limit int) (page []*core.Record, total int, err error) {
	if total, err = c.Count(app, collection); err != nil {
		return nil, 0, err
	}
	return c.PageOfUndeletedCounted(app, collection, order, offset, limit, total)
}

// PageOfUndeletedCounted is PageOfUndeleted for a caller that has already counted all matching rows, including those of deleted patients.
func (c Conditions) PageOfUndeletedCounted(app core.App, collection, order string, offset, limit, matching int) (page []*core.Record, total int, err error) {
	hidden, err := c.countDeleted(app, collection)
	if err != nil {
		return nil, 0, err
	}
	page, err = c.And(notDeleted).rows(app, collection, order, offset, limit)
	return page, matching - hidden, err
}

// notDeleted excludes rows of deleted patients, as every list does.
const notDeleted = `patient NOT IN (SELECT id FROM patients WHERE deleted_at != '')`

// countDeleted counts matching rows of deleted patients.
func (c Conditions) countDeleted(app core.App, collection string) (int, error) {
	return c.And("id IN (SELECT gone.id FROM patients CROSS JOIN "+collection+" gone ON gone.patient = patients.id"+
		" WHERE patients.deleted_at != '')").Count(app, collection)
}

// And adds an SQL expression.
func (c Conditions) And(expression string) Conditions {
	return append(slices.Clip(c), dbx.NewExp(expression))
}

// Count counts matching rows.
func (c Conditions) Count(app core.App, collection string) (n int, err error) {
	if err := app.DB().Select("COUNT(*)").From(collection).Where(AllOf(c)).Row(&n); err != nil {
		return 0, fmt.Errorf("count %s: %w", collection, err)
	}
	return n, nil
}

func (c Conditions) rows(app core.App, collection, order string, offset, limit int) (page []*core.Record, err error) {
	err = app.RecordQuery(collection).AndWhere(AllOf(c)).OrderBy(strings.Split(order, ", ")...).
		Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, wrap(err, "list %s", collection)
}

// AnyOf selects rows with one of the values in a column.
func AnyOf[Text ~string](column string, values []Text) dbx.Expression {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return dbx.In(column, list...)
}

// AllOf selects rows for which all conditions hold; without conditions, all rows. dbx itself would write empty brackets.
func AllOf(conditions []dbx.Expression) dbx.Expression {
	if len(conditions) == 0 {
		return dbx.NewExp("TRUE")
	}
	return dbx.And(conditions...)
}
