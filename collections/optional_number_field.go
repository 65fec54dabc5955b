package collections

import (
	"context"
	"database/sql/driver"
	"math"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cast"
)

// OptionalNumberFieldType is the name of the field type in the schema and the dashboard.
const OptionalNumberFieldType = "optional_number"

// OptionalNumberField is a number that may be absent (NULL). PocketBase's own number stores absence as 0, and a pulse of 0 would mean a dead
// patient.
type OptionalNumberField struct{ core.NumberField }

func init() {
	core.Fields[OptionalNumberFieldType] = func() core.Field { return &OptionalNumberField{} }
}

var (
	_ core.Field        = (*OptionalNumberField)(nil)
	_ core.DriverValuer = (*OptionalNumberField)(nil)
	_ core.SetterFinder = (*OptionalNumberField)(nil)
)

// Type implements [core.Field].
func (f *OptionalNumberField) Type() string { return OptionalNumberFieldType }

// ColumnType implements [core.Field].
func (f *OptionalNumberField) ColumnType(core.App) string { return "REAL DEFAULT NULL" }

// PrepareValue implements [core.Field]. It returns a float64 or nil.
func (f *OptionalNumberField) PrepareValue(_ *core.Record, raw any) (any, error) {
	return optionalNumber(raw), nil
}

// FindSetter implements [core.SetterFinder], without PocketBase's arithmetic modifiers.
func (f *OptionalNumberField) FindSetter(key string) core.SetterFunc {
	if key != f.Name {
		return nil
	}
	return func(record *core.Record, raw any) { record.SetRaw(f.Name, optionalNumber(raw)) }
}

// DriverValue implements [core.DriverValuer].
func (f *OptionalNumberField) DriverValue(record *core.Record) (driver.Value, error) {
	return optionalNumber(record.GetRaw(f.Name)), nil
}

// ValidateValue implements [core.Field].
func (f *OptionalNumberField) ValidateValue(ctx context.Context, app core.App, record *core.Record) error {
	value := optionalNumber(record.GetRaw(f.Name))
	if value == nil {
		if f.Required {
			return validation.ErrRequired
		}
		return nil
	}
	if n := value.(float64); math.IsNaN(n) || math.IsInf(n, 0) {
		return validation.NewError("validation_not_a_number", "The submitted number is not properly formatted.")
	}
	return f.NumberField.ValidateValue(ctx, app, record)
}

// optionalNumber returns a float64 or nil. Text that is not a number is nil, as is an empty dashboard input.
func optionalNumber(raw any) any {
	switch v := raw.(type) {
	case nil:
		return nil
	case float64:
		return v
	case *float64:
		if v == nil {
			return nil
		}
		return *v
	case string:
		if v == "" {
			return nil
		}
	}
	n, err := cast.ToFloat64E(raw)
	if err != nil {
		return nil
	}
	return n
}

// Optional returns an optional number of a row, or nil.
func Optional(row Row, column string) *float64 {
	if n, ok := row.GetRaw(column).(float64); ok {
		return &n
	}
	return nil
}
