package collections

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"sync/atomic"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cast"

	"github.com/vigilhealth/vigil/internal/phi"
)

// PHIFieldType is the name of the encrypted field type in the schema and the dashboard.
const PHIFieldType = "phi"

// sealer seals and opens every encrypted field of the process. PocketBase builds fields from a registry that is
// global to the process and hands them no app, so the keys have to be global too: UseSealer is called once, before
// the database is opened.
var sealer atomic.Pointer[phi.Sealer]

// UseSealer gives the encrypted fields their keys.
func UseSealer(s *phi.Sealer) { sealer.Store(s) }

var errNoSealer = errors.New("encrypted field used before the keys were loaded")

// Seal encrypts text for a column that raw SQL writes; purpose is "<collection>.<field>".
func Seal(plain, purpose, rowID string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Seal(plain, purpose, rowID)
}

// Open decrypts text that raw SQL has read.
func Open(sealed, purpose, rowID string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Open(sealed, purpose, rowID)
}

// OpenValue decrypts a value of a row that raw SQL has read, from a column whose purpose is "<collection>.<column>". What
// cannot be opened is counted, and the error names the record.
func OpenValue(sealed, collection, column, rowID string) (string, error) {
	plain, err := Open(sealed, collection+"."+column, rowID)
	if err != nil {
		return "", noteUnreadable(collection, rowID)
	}
	return plain, nil
}

// PHIField is text that is ciphertext in the database whoever writes it (API, dashboard, batch, script), bound to its
// purpose and its row. It is opened lazily: unread values cost nothing, and untouched ones keep their ciphertext. A value that
// cannot be opened is never replaced; [Readable] tells whoever is about to show it.
type PHIField struct {
	core.TextField
	// Purpose names what the value is, for ever: it is bound into the ciphertext and survives renames.
	Purpose string `form:"purpose" json:"purpose"`
}

func init() {
	core.Fields[PHIFieldType] = func() core.Field { return &PHIField{} }
}

var (
	_ core.Field        = (*PHIField)(nil)
	_ core.DriverValuer = (*PHIField)(nil)
	_ core.GetterFinder = (*PHIField)(nil)
	_ core.SetterFinder = (*PHIField)(nil)
)

// phiValue is what a record holds: the stored ciphertext, or a new plain text. It prints as nothing.
type phiValue struct {
	sealed, plain string
	opened        atomic.Pointer[string] // what sealed says, once it was opened
	refused       bool                   // something was to replace sealed, which cannot be opened
	noted         atomic.Bool            // that sealed cannot be opened
}

func (*phiValue) String() string { return "[encrypted]" }

// Type implements [core.Field].
func (f *PHIField) Type() string { return PHIFieldType }

// SetRequired makes the field mandatory; migrations use it.
func (f *PHIField) SetRequired(required bool) { f.Required = required }

// SetPresentable shows the plain text where the dashboard names a record; migrations use it.
func (f *PHIField) SetPresentable(presentable bool) { f.Presentable = presentable }

// PrepareValue implements [core.Field]: what comes from the database is ciphertext. It never fails.
func (f *PHIField) PrepareValue(_ *core.Record, raw any) (any, error) {
	return &phiValue{sealed: cast.ToString(raw)}, nil
}

func (f *PHIField) value(record *core.Record) *phiValue {
	switch v := record.GetRaw(f.Name).(type) {
	case *phiValue:
		return v
	case string: // set raw by code
		return &phiValue{plain: v}
	}
	return &phiValue{}
}

func (f *PHIField) open(record *core.Record) (string, error) {
	v := f.value(record)
	if v.sealed == "" {
		return v.plain, nil
	}
	if known := v.opened.Load(); known != nil {
		return *known, nil
	}
	plain, err := Open(v.sealed, f.Purpose, record.Id)
	if err == nil {
		v.opened.Store(&plain)
	}
	return plain, err
}

// FindGetter implements [core.GetterFinder]: the plain text, or nil when it cannot be opened, which is counted.
func (f *PHIField) FindGetter(key string) core.GetterFunc {
	if key != f.Name {
		return nil
	}
	return func(record *core.Record) any {
		plain, err := f.open(record)
		if err != nil {
			_ = f.note(record) // getters know no errors
			return nil
		}
		return plain
	}
}

// FindSetter implements [core.SetterFinder]. Setting the same text keeps the ciphertext. A value that cannot be opened stays as it is, and what was to
// replace it, be it text or nothing, keeps the record from being saved: a key that is missing today may be found tomorrow.
func (f *PHIField) FindSetter(key string) core.SetterFunc {
	if key != f.Name {
		return nil
	}
	return func(record *core.Record, raw any) {
		if v, ok := raw.(*phiValue); ok {
			record.SetRaw(f.Name, v)
			return
		}
		plain := cast.ToString(raw)
		current, err := f.open(record)
		switch v := f.value(record); {
		case err != nil:
			refused := &phiValue{sealed: v.sealed, refused: true}
			refused.noted.Store(v.noted.Load())
			record.SetRaw(f.Name, refused)
		case current != plain:
			record.SetRaw(f.Name, &phiValue{plain: plain})
		}
	}
}

// DriverValue implements [core.DriverValuer]: always ciphertext, or nothing for nothing. What was read under an older key is
// sealed anew: written back as it was, it would undo what a rotation of keys has done meanwhile.
func (f *PHIField) DriverValue(record *core.Record) (driver.Value, error) {
	v := f.value(record)
	if v.refused {
		return nil, f.note(record)
	}
	if s := sealer.Load(); v.sealed != "" && s != nil && s.NeedsRotation(v.sealed) {
		if plain, err := s.Open(v.sealed, f.Purpose, record.Id); err == nil {
			return s.Seal(plain, f.Purpose, record.Id)
		}
	}
	if v.sealed != "" {
		return v.sealed, nil
	}
	return Seal(v.plain, f.Purpose, record.Id)
}

// ValidateValue implements [core.Field]: length, pattern and presence of a new plain text.
func (f *PHIField) ValidateValue(_ context.Context, _ core.App, record *core.Record) error {
	v := f.value(record)
	if v.refused {
		return f.note(record)
	}
	if v.sealed != "" {
		return nil
	}
	return f.ValidatePlainValue(v.plain)
}

// ValidateSettings implements [core.Field]: an encrypted field is never a key and never generated.
func (f *PHIField) ValidateSettings(ctx context.Context, app core.App, collection *core.Collection) error {
	if f.PrimaryKey || f.AutogeneratePattern != "" || f.Purpose == "" {
		return validation.NewError("validation_phi_settings", "An encrypted field needs a purpose and can be neither a key nor generated.")
	}
	return f.TextField.ValidateSettings(ctx, app, collection)
}

// Intercept implements [core.RecordInterceptor] by doing nothing: encrypted values are never generated.
func (f *PHIField) Intercept(_ context.Context, _ core.App, _ *core.Record, _ string, action func() error) error {
	return action()
}

// OptionalNumberFieldType is the name of the field type in the schema and the dashboard.
const OptionalNumberFieldType = "optional_number"

// OptionalNumberField is a number that may be absent. PocketBase's own number turns absence into 0, which for a
// pulse would be a dead patient; this one is NULL.
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

// PrepareValue implements [core.Field]: a float64, or nil.
func (f *OptionalNumberField) PrepareValue(_ *core.Record, raw any) (any, error) {
	return optionalNumber(raw), nil
}

// FindSetter implements [core.SetterFinder]; the arithmetic modifiers of numbers make no sense here.
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

// optionalNumber is a float64 or nil; text that is no number is nil, as an emptied input of the dashboard is.
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

// Optional reads an optional number of a record; nil when absent.
func Optional(record *core.Record, field string) *float64 {
	if n, ok := record.GetRaw(field).(float64); ok {
		return &n
	}
	return nil
}
