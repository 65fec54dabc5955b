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

// Patch is a merge patch of a [Body], by member. It refuses to print.
// Source: RFC 7396; docs/decisions/patients.md, "PATCH semantics".
type Patch map[string]jsontext.Value

// Format shows nothing of the person.
func (Patch) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[patient patch]") }

// LogValue shows nothing of the person.
func (Patch) LogValue() slog.Value { return slog.StringValue("[patient patch]") }

// MarshalJSON refuses.
func (Patch) MarshalJSON() ([]byte, error) { return Draft{}.MarshalJSON() }

// Condition is what must hold of a stored patient for a change to be made.
type Condition func(tx core.App, p *collections.Patient) error

// Change merges a patch into a patient who is not deleted, checks the whole as for a replacement, and stores what the patch is about.
func Change(app core.App, id string, patch Patch, by audit.Actor, now time.Time, practice *time.Location, conditions ...Condition) (*collections.Patient, error) {
	p, err := update(app, id, by, now, conditions, func(p *collections.Patient) error {
		body, err := patch.onto(p)
		if err != nil {
			return err
		}
		checks := validate.NewChecks()
		draft := body.ReadReplacement(checks, now, practice)
		if err := checks.Err(); err != nil {
			return err
		}
		patch.only(draft).applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("change patient: %w", err)
	}
	return p, nil
}

// onto is the body that replaces a patient by what the patch makes of it. What the patch takes away altogether is null in it, so that it is told
// from what is left out.
func (patch Patch) onto(p *collections.Patient) (body Body, err error) {
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

// merge applies a merge patch to a value, which may be none. Written here since the libraries come with the other kind of patch, for which a
// patient has no use, and read numbers on the way. Source: RFC 7396, section 2.
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

// only leaves of a draft the columns that the patch is about.
func (patch Patch) only(d Draft) Draft {
	columns := maps.Clone(d.columns)
	maps.DeleteFunc(columns, func(column string, _ any) bool {
		member := nameOf(column)
		if slices.Contains(insuranceOwned, column) {
			member = "insurance"
		}
		_, about := patch[member]
		return !about
	})
	return Draft{columns}
}
