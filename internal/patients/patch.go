package patients

import (
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Patch is a merge patch of a [Body], by member. It refuses to print. Source: RFC 7396; docs/decisions/patients.md, "PATCH semantics".
type Patch map[string]jsontext.Value

// Format reveals nothing.
func (Patch) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[patient patch]") }

// LogValue reveals nothing.
func (Patch) LogValue() slog.Value { return slog.StringValue("[patient patch]") }

// MarshalJSON refuses.
func (Patch) MarshalJSON() ([]byte, error) { return Draft{}.MarshalJSON() }

// Precondition must hold for a stored patient before a change.
type Precondition func(tx core.App, p *collections.Patient) error

// ApplyPatch merges a patch into a patient who is not deleted, validates the result as a replacement, and stores the patched members.
func ApplyPatch(app core.App, id string, patch Patch, by audit.Actor, now time.Time, practice *time.Location, conditions ...Precondition) (*collections.Patient, error) {
	p, err := update(app, id, by, now, conditions, func(p *collections.Patient) error {
		body, err := patch.bodyFor(p)
		if err != nil {
			return err
		}
		checks := validate.NewChecks()
		draft := body.ReadReplacement(checks, now, practice)
		if err := checks.Err(); err != nil {
			return err
		}
		patch.restrict(draft).applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("change patient: %w", err)
	}
	return p, nil
}

// bodyFor returns the body of the patched patient. A removed member is null, to distinguish it from an omitted one.
func (patch Patch) bodyFor(p *collections.Patient) (body Body, err error) {
	readable := slices.DeleteFunc(slices.Clone(bodyColumns), func(column string) bool { return column == collections.PatientSSN })
	whole := map[string]jsontext.Value{}
	raw, err := json.Marshal(membersOf(p, readable))
	if err == nil {
		err = validate.DecodeMember(raw, &whole)
	}
	if err != nil {
		return body, fmt.Errorf("write a patient as a body: %w", err)
	}
	for name, value := range patch {
		if whole[name], err = merge(whole[name], value); err != nil {
			return body, err
		}
	}
	if raw, err = json.Marshal(whole); err != nil {
		return body, fmt.Errorf("write a patched patient: %w", err)
	}
	return body, validate.DecodeObject(raw, &body)
}

// merge applies a merge patch to a value, which may be empty. Libraries implement the other kind of patch or convert numbers.
// Source: RFC 7396, section 2.
func merge(target, patch jsontext.Value) (jsontext.Value, error) {
	members, ok := membersIn(patch)
	if !ok {
		return patch, nil
	}
	whole, ok := membersIn(target)
	if !ok {
		whole = map[string]jsontext.Value{}
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			delete(whole, name)
			continue
		}
		merged, err := merge(whole[name], value)
		if err != nil {
			return nil, err
		}
		whole[name] = merged
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return nil, fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.").Because(err)
	}
	return raw, nil
}

func membersIn(value jsontext.Value) (members map[string]jsontext.Value, ok bool) {
	if value.Kind() != '{' {
		return nil, false
	}
	return members, validate.DecodeMember(value, &members) == nil
}

// restrict removes the columns that the patch does not name.
func (patch Patch) restrict(d Draft) Draft {
	columns := maps.Clone(d.columns)
	maps.DeleteFunc(columns, func(column string, _ any) bool {
		member := contractName(column)
		if slices.Contains(insuranceColumns, column) {
			member = "insurance"
		}
		_, about := patch[member]
		return !about
	})
	return Draft{columns}
}
