package collections

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Conditions narrow a list; what is not asked for does not.
type Conditions []dbx.Expression

// Equal keeps rows whose column has the value, unless it is "".
func (c Conditions) Equal(column, value string) Conditions {
	if value == "" {
		return c
	}
	return append(c, dbx.HashExp{column: value})
}

// Is keeps rows whose flag is as given, unless nil. The value is written out, not bound, or SQLite would not use the
// partial indexes made for it.
func (c Conditions) Is(column string, value *bool) Conditions {
	if value == nil {
		return c
	}
	return append(c, dbx.NewExp(fmt.Sprintf("%s = %t", column, *value)))
}

// Between keeps rows whose time lies between the two, both included; a zero end is open.
func (c Conditions) Between(column string, from, to time.Time) Conditions {
	if !from.IsZero() {
		c = append(c, dbx.NewExp(column+" >= {:from}", dbx.Params{"from": Instant(from)}))
	}
	if !to.IsZero() {
		c = append(c, dbx.NewExp(column+" <= {:to}", dbx.Params{"to": Instant(to)}))
	}
	return c
}

// OnCareTeamOf keeps rows about patients of whose care team the user is one, unless "".
func (c Conditions) OnCareTeamOf(userID string) Conditions {
	if userID == "" {
		return c
	}
	return append(c, OnCareTeam("patient", userID))
}

// PageOfPatients returns a page of records in the given order, and how many there are in all, without what belongs to deleted
// patients. That is little and found by those patients, so it is counted, and not the much that stays.
func (c Conditions) PageOfPatients(app core.App, collection, order string, offset, limit int) (page []*core.Record, total int, err error) {
	if total, err = c.Count(app, collection); err != nil {
		return nil, 0, err
	}
	return c.PageOfPatientsAmong(app, collection, order, offset, limit, total)
}

// PageOfPatientsAmong is PageOfPatients for who knows already how many rows match, those of deleted patients among them.
func (c Conditions) PageOfPatientsAmong(app core.App, collection, order string, offset, limit, matching int) (page []*core.Record, total int, err error) {
	hidden, err := c.countDeleted(app, collection)
	if err != nil {
		return nil, 0, err
	}
	page, err = c.And(notDeleted).rows(app, collection, order, offset, limit)
	return page, matching - hidden, err
}

// notDeleted leaves out what belongs to deleted patients, as all lists do.
const notDeleted = `patient NOT IN (SELECT id FROM patients WHERE deleted_at != '')`

// countDeleted is how many rows of deleted patients match.
func (c Conditions) countDeleted(app core.App, collection string) (int, error) {
	return c.And("id IN (SELECT gone.id FROM patients CROSS JOIN "+collection+" gone ON gone.patient = patients.id"+
		" WHERE patients.deleted_at != '')").Count(app, collection)
}

// And keeps rows for which an SQL expression holds, too.
func (c Conditions) And(expression string) Conditions {
	return append(slices.Clip(c), dbx.NewExp(expression))
}

// Count is how many rows match.
func (c Conditions) Count(app core.App, collection string) (n int, err error) {
	if err := app.DB().Select("COUNT(*)").From(collection).Where(Every(c)).Row(&n); err != nil {
		return 0, fmt.Errorf("count %s: %w", collection, err)
	}
	return n, nil
}

func (c Conditions) rows(app core.App, collection, order string, offset, limit int) (page []*core.Record, err error) {
	err = app.RecordQuery(collection).AndWhere(Every(c)).OrderBy(strings.Split(order, ", ")...).
		Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, wrap(err, "list %s", collection)
}

// AnyOf is true where a column has one of the values.
func AnyOf[Text ~string](column string, values []Text) dbx.Expression {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return dbx.In(column, list...)
}

// Every is true where all conditions are; without any, everywhere. dbx itself would write an empty pair of brackets.
func Every(conditions []dbx.Expression) dbx.Expression {
	if len(conditions) == 0 {
		return dbx.NewExp("TRUE")
	}
	return dbx.And(conditions...)
}
