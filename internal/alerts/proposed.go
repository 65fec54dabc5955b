package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// ProposedTemplate is a template that fits a patient, before a clinician has applied or declined it.
type ProposedTemplate struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Bounds Bounds `json:"bounds"`
}

// ProvisionalBound is a critical bound of a proposed template that is stricter than the patient's, and in force until a clinician decides.
// Source: docs/decisions/alerts.md, "Proposed templates".
type ProvisionalBound struct {
	Field      string  `json:"field"` // its place in vital-config, such as blood_pressure.systolic_critical
	Value      float64 `json:"value"`
	TemplateID int64   `json:"template_id"`

	template string // name
	looser   bool   // proposed, but not in force
}

// parseProposed reads undecided templates as stored; an empty text has none.
func parseProposed(stored string) (list []ProposedTemplate, err error) {
	if stored == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(stored), &list); err != nil {
		return nil, fmt.Errorf("read proposed templates: %w", err)
	}
	return list, nil
}

// ParseProvisional reads stored provisional bounds; an empty text has none.
func ParseProvisional(stored string) ([]ProvisionalBound, error) {
	list := []ProvisionalBound{}
	if stored == "" {
		return list, nil
	}
	if err := json.Unmarshal([]byte(stored), &list); err != nil {
		return nil, fmt.Errorf("read provisional bounds: %w", err)
	}
	return list, nil
}

// isCritical reports whether the bound raises critical alerts.
func (f boundField) isCritical() bool { return strings.Contains(f.field, "critical") }

// isLimit reports whether a smaller or greater value makes the bound stricter; a window and a target have no such order.
func (f boundField) isLimit() bool {
	return !slices.ContainsFunc(vitals.ChangeParameters, func(p *vitals.Parameter) bool {
		return p.Group == f.group && (f.field == p.Change.Window || f.field == p.Change.Target)
	})
}

// isStricter reports whether a value of the bound alerts earlier than another: a greater one of a low bound, a smaller one of all others.
func (f boundField) isStricter(value float64, than *float64) bool {
	switch {
	case than == nil:
		return true
	case strings.HasSuffix(f.field, "low"):
		return value > *than
	}
	return value < *than
}

// WithProposed adds to a patient's own bounds the critical bounds of proposed templates that are stricter than those in force, the
// strictest of several, and lists them. A looser one is not added and listed for the text of an alert. A group that a person disabled stays
// disabled. Source: docs/decisions/alerts.md, "Proposed templates".
func WithProposed(defaults, own Bounds, proposed []ProposedTemplate) (Bounds, []ProvisionalBound) {
	if len(proposed) == 0 {
		return own, nil
	}
	with, now := own.clone(), InForce(defaults, own)
	var list []ProvisionalBound
	for _, order := range boundOrders {
		for _, f := range order {
			if !f.isCritical() || slices.Contains(own.groupsOff(), f.group) {
				continue
			}
			best, found := f.inForce(now), ProvisionalBound{}
			for _, t := range proposed {
				if value := t.bound(f, now); value != nil && f.isStricter(*value, best) && order.admits(f, *value, now) {
					best, found = value, ProvisionalBound{Field: f.Name(), Value: *value, TemplateID: t.ID, template: t.Name}
				}
			}
			if found.Field != "" {
				list = append(list, found)
				order.set(with, f, best)
			}
			for _, t := range proposed {
				if value := t.bound(f, now); value != nil && !f.isStricter(*value, best) && *value != *best {
					list = append(list, ProvisionalBound{Field: f.Name(), Value: *value, TemplateID: t.ID, template: t.Name, looser: true})
				}
			}
		}
	}
	return with, list
}

// bound returns a template's value of a critical bound; nil for none. A critical change that the template does not name is twice its change,
// as once applied. A change within other days than those in force cannot be compared.
func (t ProposedTemplate) bound(f boundField, now Thresholds) *float64 {
	fields := t.Bounds[f.group]
	value := fields[f.field]
	for _, p := range vitals.ChangeParameters {
		if p.Group != f.group || p.Change.Critical != f.field {
			continue
		}
		if window := fields[p.Change.Window]; window != nil && int(*window) != now.Change(p).WindowDays {
			return nil
		}
		if change, named := fields[p.Change.Threshold], hasField(fields, f.field); value == nil && !named && change != nil {
			value = new(2 * *change)
		}
	}
	return value
}

func hasField(fields map[string]*float64, name string) bool { _, has := fields[name]; return has }

// admits reports whether a value of a critical bound keeps its order with the critical bound of the other side.
func (a ascending) admits(f boundField, value float64, now Thresholds) bool {
	at := slices.IndexFunc(a, func(other boundField) bool { return other.field == f.field })
	for i, other := range a {
		if bound := other.inForce(now); bound != nil && other.isCritical() && (i < at && *bound >= value || i > at && *bound <= value) {
			return false
		}
	}
	return true
}

// set stores a bound, and takes out the patient's own warning bounds that it passes: a value beyond them is critical already.
func (a ascending) set(own Bounds, f boundField, value *float64) {
	if own[f.group] == nil {
		own[f.group] = map[string]*float64{}
	}
	own[f.group][f.field] = value
	at := slices.IndexFunc(a, func(other boundField) bool { return other.field == f.field })
	for i, other := range a {
		if bound := own[other.group][other.field]; bound != nil && (i < at && *bound >= *value || i > at && *bound <= *value) {
			delete(own[other.group], other.field)
		}
	}
}

// inForceWith combines stored bounds, see [InForce], with those of proposed templates.
func inForceWith(defaults, own Bounds, proposed []ProposedTemplate) Thresholds {
	with, list := WithProposed(defaults, own, proposed)
	t := InForce(defaults, with)
	t.proposed = list
	return t
}

// Provisional lists the bounds of proposed templates in force.
func (t Thresholds) Provisional() []ProvisionalBound {
	list := []ProvisionalBound{}
	for _, bound := range t.proposed {
		if !bound.looser {
			list = append(list, bound)
		}
	}
	return list
}

// ProvisionalText names the templates that are not decided and their bounds; "" for none.
func (t Thresholds) ProvisionalText() string {
	var names, bounds []string
	for _, bound := range t.Provisional() {
		if !slices.Contains(names, bound.template) {
			names = append(names, bound.template)
		}
		group, field, _ := strings.Cut(bound.Field, ".")
		bounds = append(bounds, strings.ReplaceAll(group+" "+field, "_", " ")+" "+vitals.FormatNumber(bound.Value))
	}
	if len(names) == 0 {
		return ""
	}
	return "Proposed and not decided: " + strings.Join(names, "; ") + ". In force until then: " + strings.Join(bounds, ", ") + "."
}

// proposedNotes states which of the bounds that a finding met are provisional, and which looser ones are proposed.
func (t Thresholds) proposedNotes(r vitals.Reading, group []*vitals.Parameter, found Finding) (notes string) {
	said := map[string]bool{}
	for _, bound := range t.proposed {
		if !t.isAbout(bound, r, group, found) {
			continue
		}
		note := fmt.Sprintf(" The critical limit is provisional: the template %s is proposed and not decided.", bound.template)
		if bound.looser {
			note = fmt.Sprintf(" The template %s is proposed with the looser critical limit %s, which is not in force until a clinician applies it.",
				bound.template, vitals.FormatNumber(bound.Value))
		}
		if !said[note] {
			notes, said[note] = notes+note, true
		}
	}
	return notes
}

// isAbout reports whether a proposed bound concerns a value of the finding: a provisional one that it meets, or a looser one on the side of
// the bound that it meets.
func (t Thresholds) isAbout(bound ProvisionalBound, r vitals.Reading, group []*vitals.Parameter, found Finding) bool {
	for _, p := range group {
		if p.Change != nil {
			if found.Level == Critical && strings.HasPrefix(bound.Field, p.Group+".") {
				return true
			}
			continue
		}
		value := r.Value(p)
		if value == nil {
			continue
		}
		level, threshold, _ := breach(p, *value, "", t.Limits(p))
		isLow := bound.Field == p.Group+"."+p.Prefix+string(vitals.CriticalLow)
		if level == "" || !isLow && bound.Field != p.Group+"."+p.Prefix+string(vitals.Critical) {
			continue
		}
		limits := t.Limits(p)
		met := limits.Critical
		warning := limits.High
		if isLow {
			met, warning = limits.CriticalLow, limits.Low
		}
		if equalBounds(met, &threshold) || bound.looser && equalBounds(warning, &threshold) {
			return true
		}
	}
	return false
}
