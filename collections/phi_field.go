package collections

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cast"

	"github.com/vigilhealth/vigil/internal/phi"
)

// PHIFieldType is the name of the encrypted field type in the schema and the dashboard.
const PHIFieldType = "phi"

// sealer encrypts and decrypts every PHI field of the process. It is a process-wide variable because PocketBase builds fields from a global
// registry and passes them no app. UseSealer sets it once, before the database is opened.
var sealer atomic.Pointer[phi.Sealer]

// UseSealer sets the keys of all PHI fields in this process.
func UseSealer(s *phi.Sealer) { sealer.Store(s) }

var errNoSealer = errors.New("encrypted field used before the keys were loaded")

// Seal encrypts text for a column that raw SQL writes. purpose is "<collection>.<field>".
func Seal(plain, purpose, rowID string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Seal(plain, purpose, rowID)
}

// Open decrypts text that raw SQL read.
func Open(sealed, purpose, rowID string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Open(sealed, purpose, rowID)
}

// OpenValue decrypts a value that raw SQL read from a column with the purpose "<collection>.<column>". If it cannot be opened, it is counted
// and the error names the record.
func OpenValue(sealed, collection, column, rowID string) (string, error) {
	plain, err := Open(sealed, collection+"."+column, rowID)
	if err != nil {
		return "", reportUnreadable(collection, rowID)
	}
	return plain, nil
}

// PHIField is text stored as ciphertext, bound to its purpose and row, no matter which writer stores it (API, dashboard, batch, script). It
// decrypts on first read, and an unchanged value keeps its ciphertext. A value that cannot be opened is never replaced; [Readable] reports it
// before a caller shows the record.
type PHIField struct {
	core.TextField
	// Purpose identifies the value and must never change: it is bound into the ciphertext and survives renames.
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

// phiValue holds the stored ciphertext or a new plain text. It never prints its content.
type phiValue struct {
	sealed, plain string
	opened        atomic.Pointer[string] // plain text of sealed, after the first read
	rejected      bool                   // a caller tried to replace sealed, which cannot be opened
	reported      atomic.Bool            // the failure to open sealed has been counted
}

func (*phiValue) String() string { return "[encrypted]" }

// Type implements [core.Field].
func (f *PHIField) Type() string { return PHIFieldType }

// SetRequired makes the field mandatory. Migrations use it.
func (f *PHIField) SetRequired(required bool) { f.Required = required }

// SetPresentable lets the dashboard show the plain text as the record's title. Migrations use it.
func (f *PHIField) SetPresentable(presentable bool) { f.Presentable = presentable }

// PrepareValue implements [core.Field]. Values from the database are ciphertext; it never fails.
func (f *PHIField) PrepareValue(_ *core.Record, raw any) (any, error) {
	return &phiValue{sealed: cast.ToString(raw)}, nil
}

func (f *PHIField) value(record *core.Record) *phiValue {
	switch v := record.GetRaw(f.Name).(type) {
	case *phiValue:
		return v
	case string: // SetRaw with plain text
		return &phiValue{plain: v}
	}
	return &phiValue{}
}

func (f *PHIField) open(record *core.Record) (string, error) {
	v := f.value(record)
	if v.sealed == "" {
		return v.plain, nil
	}
	if opened := v.opened.Load(); opened != nil {
		return *opened, nil
	}
	plain, err := Open(v.sealed, f.Purpose, record.Id)
	if err == nil {
		v.opened.Store(&plain)
	}
	return plain, err
}

// FindGetter implements [core.GetterFinder]. It returns the plain text, or nil if the value cannot be opened, which is counted.
func (f *PHIField) FindGetter(key string) core.GetterFunc {
	if key != f.Name {
		return nil
	}
	return func(record *core.Record) any {
		plain, err := f.open(record)
		if err != nil {
			_ = f.reportUnreadable(record) // a getter cannot return an error
			return nil
		}
		return plain
	}
}

// FindSetter implements [core.SetterFinder]. Setting the same text keeps the ciphertext. If the stored value cannot be opened, it stays, and
// the record cannot be saved: a key that is missing today may be restored tomorrow.
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
			refused := &phiValue{sealed: v.sealed, rejected: true}
			refused.reported.Store(v.reported.Load())
			record.SetRaw(f.Name, refused)
		case current != plain:
			record.SetRaw(f.Name, &phiValue{plain: plain})
		}
	}
}

// DriverValue implements [core.DriverValuer]. It returns ciphertext, or "" for "". A value sealed under an older key is sealed again: storing
// the old ciphertext would undo a key rotation that ran in between.
func (f *PHIField) DriverValue(record *core.Record) (driver.Value, error) {
	v := f.value(record)
	if v.rejected {
		return nil, f.reportUnreadable(record)
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
	if v.rejected {
		return f.reportUnreadable(record)
	}
	if v.sealed != "" {
		return nil
	}
	return f.ValidatePlainValue(v.plain)
}

// ValidateSettings implements [core.Field]. An encrypted field is never a key and never generated.
func (f *PHIField) ValidateSettings(ctx context.Context, app core.App, collection *core.Collection) error {
	if f.PrimaryKey || f.AutogeneratePattern != "" || f.Purpose == "" {
		return validation.NewError("validation_phi_settings", "An encrypted field needs a purpose and can be neither a key nor generated.")
	}
	return f.TextField.ValidateSettings(ctx, app, collection)
}

// Intercept implements [core.RecordInterceptor] and does nothing, because encrypted values are never generated.
func (f *PHIField) Intercept(_ context.Context, _ core.App, _ *core.Record, _ string, action func() error) error {
	return action()
}
