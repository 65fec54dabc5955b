package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// groupBody is one group of a [ThresholdChangeBody]; null switches the group off.
type groupBody = validate.Field[map[string]validate.Number]

// ThresholdChangeBody holds the members of a request to change thresholds: the groups and the reason.
type ThresholdChangeBody map[string]json.RawMessage

// ThresholdChange is a validated [ThresholdChangeBody].
type ThresholdChange struct {
	groups         map[string]map[string]*float64 // nil switches the group off
	replacesGroups bool                           // a group is replaced, not changed
	// Reason is 1 to 500 characters.
	Reason phi.Text
}

// Read checks a body as far as possible without the stored thresholds. An unknown member is rejected: a misspelled bound would be missed
// only when it is needed. Source: docs/decisions/alerts.md, "Unknown bounds" and "Change-log field names".
func (b ThresholdChangeBody) Read(c *validate.Checks) ThresholdChange {
	change := b.readGroups(c, answerMembers...)
	change.Reason = phi.Text(c.Text("reason", member[string](b, "reason"), validate.Required(500)))
	return change
}

func member[T any](b ThresholdChangeBody, name string) (f validate.Field[T]) {
	if raw, sent := b[name]; sent {
		_ = f.UnmarshalJSON(raw) // never fails: a wrong type is kept for the checks
	}
	return f
}

// answerMembers are the members of the answer that are no bounds, and the reason. A caller may send back an answer as it was read; they
// change nothing.
var answerMembers = []string{
	"reason", "patient_id", "updated_at", "updated_by", "is_default", "templates", "provisional", "needs_target_weight", "proposed_target_kg",
}

// readGroups checks the groups, and rejects members that are neither a group nor one of the others.
func (b ThresholdChangeBody) readGroups(c *validate.Checks, others ...string) ThresholdChange {
	for name := range b {
		if !slices.Contains(Groups, name) && !slices.Contains(others, name) {
			c.Reject(name, noSuchGroup)
		}
	}
	change, bodies := ThresholdChange{groups: map[string]map[string]*float64{}}, map[string]groupBody{}
	for _, group := range Groups {
		sent := member[map[string]validate.Number](b, group)
		bodies[group] = sent
		switch {
		case sent.Given():
			change.groups[group] = map[string]*float64{}
		case sent.Null():
			change.groups[group] = nil
		case sent.Sent():
			c.Reject(group, "Must be an object.")
		}
	}
	for _, f := range boundFields {
		sent := bodies[f.group]
		if !sent.Given() || !sent.Value[f.field].Sent() {
			continue
		}
		value := c.Number(f.Name(), sent.Value[f.field], false)
		if value != nil {
			if message := f.problem(*value); message != "" {
				c.Reject(f.Name(), message)
			}
			value = new(vitals.RoundHalfUp(*value, vitals.Decimals))
		}
		change.groups[f.group][f.field] = value
	}
	for group, sent := range bodies {
		for field := range sent.Value {
			if _, isBound := change.groups[group][field]; !isBound {
				c.Reject(group+"."+field, noSuchBound)
			}
		}
	}
	return change
}

// applyTo returns the bounds after the change. An object switches a group on; fields that it omits are inherited. Replacing a group keeps
// the patient's target.
func (change ThresholdChange) applyTo(old Bounds) Bounds {
	changed := old.clone()
	for group, fields := range change.groups {
		if fields == nil {
			changed[group] = nil
			continue
		}
		if changed[group] == nil || change.replacesGroups {
			changed[group] = old.targets(group)
		}
		maps.Copy(changed[group], fields)
	}
	return changed
}

// targets returns the patient's targets of a group, never nil.
func (b Bounds) targets(group string) map[string]*float64 {
	own := map[string]*float64{}
	for _, p := range vitals.ChangeParameters {
		if target, set := b[group][p.Change.Target]; set && p.Group == group {
			own[p.Change.Target] = target
		}
	}
	return own
}

// Configuration is the thresholds of a patient or of the practice, with their history.
type Configuration struct {
	PatientID string // "" for the practice's defaults
	InForce   Thresholds
	// Off lists the groups that raise no alerts.
	Off       []string
	UpdatedAt time.Time // zero before any change
	UpdatedBy string
	// Default is true if nothing was ever set for the patient.
	Default bool
	// Provisional are bounds in force of templates that are proposed and not decided.
	Provisional []ProvisionalBound
	// Templates were applied to the patient, the latest last.
	Templates []collections.AppliedTemplate
}

// Configured returns the thresholds of a patient; those of the practice if patientID is "".
// Source: docs/decisions/alerts.md, "GET before any configuration".
func Configured(app core.App, patientID string) (Configuration, error) {
	practice, own, err := collections.FindThresholds(app, patientID)
	if err != nil {
		return Configuration{}, err
	}
	_, configuration, err := parseConfiguration(patientID, practice, own)
	return configuration, err
}

// stored holds the bounds of two rows; for the practice itself, own are its defaults.
type stored struct {
	practice, own Bounds
	proposed      []ProposedTemplate
}

func parseConfiguration(patientID string, practice, own collections.ThresholdsRow) (s stored, c Configuration, err error) {
	if s.practice, err = ParseBounds(practice.Bounds); err != nil {
		return s, c, err
	}
	s.practice = defaultsOf(s.practice, own.AgeGroup)
	if s.own, err = ParseBounds(own.Bounds); err != nil {
		return s, c, err
	}
	if c.Templates, err = collections.ParseAppliedTemplates(own.Templates); err != nil {
		return s, c, err
	}
	if s.proposed, err = parseProposed(own.Proposed); err != nil {
		return s, c, err
	}
	c.PatientID, c.UpdatedAt, c.UpdatedBy, c.Default = patientID, own.Changed(), own.UpdatedBy, own.ID == "" || patientID == ""
	c.InForce, c.Off = s.withProposed(patientID, s.own), s.own.groupsOff()
	c.Provisional = c.InForce.Provisional()
	return s, c, nil
}

// withProposed is inForce with the bounds of undecided templates.
func (s stored) withProposed(patientID string, own Bounds) Thresholds {
	if patientID == "" {
		return InForce(own, nil)
	}
	return inForceWith(s.practice, own, s.proposed)
}

// inForce returns the thresholds without proposals if own were stored, as the change log compares.
func (s stored) inForce(patientID string, own Bounds) Thresholds {
	if patientID == "" {
		return InForce(own, nil)
	}
	return InForce(s.practice, own)
}

// groupsOff returns the groups that are switched off.
func (b Bounds) groupsOff() (groups []string) {
	for _, group := range Groups {
		if fields, configured := b[group]; configured && fields == nil {
			groups = append(groups, group)
		}
	}
	return groups
}

// SetThresholds changes the thresholds of a patient, or of the practice if patientID is "", in the caller's transaction, with change log
// and audit entry. A change that breaks the order of the bounds is a validation fault. If nothing differs, nothing is written and changed
// is false.
func SetThresholds(tx core.App, patientID string, change ThresholdChange, by audit.Actor, now time.Time) (c Configuration, changed bool, err error) {
	practice, own, err := collections.FindThresholds(tx, patientID)
	if err != nil {
		return c, false, err
	}
	before, c, err := parseConfiguration(patientID, practice, own)
	if err != nil {
		return c, false, err
	}
	after := change.applyTo(before.own)
	checks := validate.NewChecks()
	after.check(checks, patientID, change.names)
	before.checkInherited(checks, patientID, after)
	if err := checks.Err(); err != nil {
		return c, false, err
	}
	if before.own.Equal(after) {
		return c, false, nil
	}
	if own.ID == "" {
		own.ID, own.Patient = core.GenerateDefaultRandomId(), patientID
	}
	text, err := json.Marshal(after)
	if err != nil {
		return c, false, fmt.Errorf("encode thresholds: %w", err)
	}
	own.Bounds, own.UpdatedAt, own.UpdatedBy = string(text), collections.FormatInstant(now), ActorName(by)
	if err := collections.StoreThresholds(tx, own); err != nil {
		return c, false, err
	}
	if err := logChange(tx, patientID, before, after, change.Reason, by, now); err != nil {
		return c, false, err
	}
	_, c, err = parseConfiguration(patientID, practice, own)
	return c, true, err
}

// names reports whether the change names a bound.
func (change ThresholdChange) names(name string) bool {
	for _, f := range boundFields {
		if f.Name() != name {
			continue
		}
		_, named := change.groups[f.group][f.field]
		return named
	}
	return false
}

// ChangedBound is one change of a bound in force.
type ChangedBound struct {
	Field    string // name in the change log
	Old, New *float64
}

// changedBounds compares the stored bounds with the new ones. A bound that only follows another, such as an inherited one that a new bound
// displaces, is not a change of its own.
func (s stored) changedBounds(patientID string, after Bounds) (changed []ChangedBound) {
	was, is := s.inForce(patientID, s.own), s.inForce(patientID, after)
	for _, f := range boundFields {
		if s.own.sameBound(after, f) {
			continue
		}
		if old, now := s.own.effective(f, was), after.effective(f, is); !equalBounds(old, now) {
			changed = append(changed, ChangedBound{f.logName, old, now})
		}
	}
	return changed
}

// effective returns the bound in force; nil while its group is off, also for the window of the weight rule.
func (b Bounds) effective(f boundField, t Thresholds) *float64 {
	if slices.Contains(b.groupsOff(), f.group) {
		return nil
	}
	return f.inForce(t)
}

// sameBound reports whether both store the same for a bound.
func (b Bounds) sameBound(other Bounds, f boundField) bool {
	mine, mineSet := b[f.group][f.field]
	theirs, theirsSet := other[f.group][f.field]
	return mineSet == theirsSet && equalBounds(mine, theirs) && slices.Contains(b.groupsOff(), f.group) == slices.Contains(other.groupsOff(), f.group)
}

// Equal reports whether both store the same bounds.
func (b Bounds) Equal(other Bounds) bool {
	return !slices.ContainsFunc(boundFields, func(f boundField) bool { return !b.sameBound(other, f) })
}

func equalBounds(a, b *float64) bool { return a == b || (a != nil && b != nil && *a == *b) }

// logChange writes the change log and the audit entry.
func logChange(tx core.App, patientID string, before stored, after Bounds, reason phi.Text, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for _, changed := range before.changedBounds(patientID, after) {
		if err := collections.StoreThresholdChange(tx, patientID, changed.Field, changed.Old, changed.New, reason, ActorName(by), now); err != nil {
			return err
		}
		changes[changed.Field] = audit.Change{Old: changed.Old, New: changed.New}
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.ThresholdUpdate, Actor: by, ResourceType: audit.ResourceThresholds, ResourceID: patientID,
		PatientID: patientID, Reason: reason, Changes: changes,
	}, now)
}

// dashboardReason is the reason in the change log for records edited in the dashboard, which has no field for one.
const dashboardReason = "Changed in the dashboard."

// GuardThresholds checks a thresholds record before it is saved, and logs the change after save, in the caller's transaction. Errors are
// [validation.Errors] by column.
func GuardThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	patientID := collections.PatientOf(record)
	if !record.IsNew() && collections.PatientOf(record.Original()) != patientID {
		return validation.Errors{"patient": validation.NewError("fixed", "Thresholds stay with their patient.")}
	}
	after, err := ParseBounds(record.GetString(collections.ThresholdsBounds))
	if err != nil {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", `Must be groups of bounds, such as {"pulse":{"high":120}}.`)}
	}
	before, err := loadStored(tx, patientID)
	if err != nil {
		return err
	}
	checks := validate.NewChecks()
	after.check(checks, patientID, func(string) bool { return false })
	before.checkInherited(checks, patientID, after)
	for _, name := range slices.Sorted(maps.Keys(checks.Fields)) {
		return validation.Errors{"bounds": validation.NewError("validation_invalid_value", name+": "+checks.Fields[name][0])}
	}
	changed := !before.own.Equal(after)
	if changed {
		record.Set(collections.ThresholdsUpdatedAt, collections.FormatInstant(now))
		record.Set(collections.ThresholdsUpdatedBy, ActorName(by))
	}
	if err := save(); err != nil || !changed {
		return err
	}
	return logChange(tx, patientID, before, after, dashboardReason, by, now)
}

// DeleteThresholds logs the removal of a patient's own bounds; remove performs it. The practice's bounds cannot be removed.
func DeleteThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	patientID := collections.PatientOf(record)
	if patientID == "" {
		return validation.Errors{"id": validation.NewError("kept", "The practice's thresholds cannot be deleted.")}
	}
	before, err := loadStored(tx, patientID)
	if err != nil {
		return err
	}
	if err := remove(); err != nil {
		return err
	}
	return logChange(tx, patientID, before, Bounds{}, dashboardReason, by, now)
}

// loadStored returns the stored bounds before a change. Own bounds that cannot be parsed count as none.
func loadStored(tx core.App, patientID string) (stored, error) {
	practice, own, err := collections.FindThresholds(tx, patientID)
	if err != nil {
		return stored{}, err
	}
	if _, err := ParseBounds(own.Bounds); err != nil {
		own.Bounds = ""
	}
	s, _, err := parseConfiguration(patientID, practice, own)
	return s, err
}
