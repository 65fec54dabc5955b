package alerts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// boundField is one bound that can be set: where it is stored, what the change log calls it, and what it may be.
type boundField struct {
	group, field string
	log          string
	within       vitals.Range
	whole        bool
	inForce      func(Thresholds) *float64
}

// Name is the bound as request bodies name it.
func (f boundField) Name() string { return f.group + "." + f.field }

// Groups are the threshold groups in the contract's order.
var Groups = func() (groups []string) {
	for _, p := range vitals.Watched {
		if !slices.Contains(groups, p.Group) {
			groups = append(groups, p.Group)
		}
	}
	return groups
}()

// ascending lists the bounds of one parameter that are in order when each is greater than the one before.
type ascending []boundField

// parameters are all bounds that can be set, by the order they must keep.
// Source: docs/decisions/alerts.md, "Extra threshold fields" and "Change-log field names".
var parameters = func() (all []ascending) {
	for _, p := range vitals.Watched {
		if p.Change != nil {
			all = append(all, changeFields(p)...)
			continue
		}
		var list ascending
		for _, side := range p.Sides {
			list = append(list, boundField{p.Group, p.Prefix + string(side), p.Name + "_" + string(side), p.Range, false, func(t Thresholds) *float64 {
				return t.Of(p).Of(side)
			}})
		}
		all = append(all, list)
	}
	return all
}()

func changeFields(p *vitals.Parameter) []ascending {
	field := func(name string, within vitals.Range, whole bool, inForce func(ChangeRule) *float64) boundField {
		return boundField{p.Group, name, p.Name + "_" + name, within, whole, func(t Thresholds) *float64 { return inForce(t.Change(p)) }}
	}
	return []ascending{
		{
			field(p.Change.Threshold, p.Change.ThresholdRange, false, func(r ChangeRule) *float64 { return r.Change }),
			field(p.Change.Critical, p.Change.CriticalRange, false, func(r ChangeRule) *float64 { return r.CriticalChange }),
		},
		{field(p.Change.Window, p.Change.WindowRange, true, func(r ChangeRule) *float64 { return new(float64(r.WindowDays)) })},
		{field(p.Change.Daily, p.Change.DailyRange, false, func(r ChangeRule) *float64 { return r.Daily })},
		{field(p.Change.Target, p.Change.TargetRange, false, func(r ChangeRule) *float64 { return r.Target })},
		{field(p.Change.Over, p.Change.OverRange, false, func(r ChangeRule) *float64 { return r.Over })},
	}
}

// boundFields are all bounds that can be set.
var boundFields = slices.Concat(parameters...)

// ChangeLogFields are the names in the change log.
func ChangeLogFields() (names []string) {
	for _, f := range boundFields {
		names = append(names, f.log)
	}
	return names
}

// complaint says what is wrong with a value; "" for nothing.
func (f boundField) complaint(value float64) string {
	switch {
	case !f.within.Contains(value):
		return f.within.Message()
	case f.whole && value != float64(int(value)):
		return "A valid integer is required."
	}
	return ""
}

// Complaints says what is wrong with stored bounds, by name: unknown groups and fields, values out of range, and values
// that break the order critical_low < low < high < critical. Of two that contradict each other it names the one that
// blames prefers, else the upper.
func (b Bounds) Complaints(blames func(name string) bool) map[string]string {
	wrong := map[string]string{}
	known := map[string]bool{}
	for _, f := range boundFields {
		known[f.Name()] = true
		if value := b[f.group][f.field]; value != nil {
			if message := f.complaint(*value); message != "" {
				wrong[f.Name()] = message
			}
		}
	}
	for group, fields := range b {
		if !slices.Contains(Groups, group) {
			wrong[group] = "There is no such group."
			continue
		}
		for field := range fields {
			if name := group + "." + field; !known[name] {
				wrong[name] = "There is no such bound."
			}
		}
	}
	for _, list := range parameters {
		list.disorder(b, blames, wrong)
	}
	return wrong
}

// complaintsOf are those, and what the practice, whose patientID is "", cannot have: a target is one patient's.
func (b Bounds) complaintsOf(patientID string, blames func(name string) bool) map[string]string {
	wrong := b.Complaints(blames)
	for _, p := range vitals.Changing {
		if patientID == "" && b[p.Group][p.Change.Target] != nil {
			wrong[p.Group+"."+p.Change.Target] = "Each patient has a target of their own."
		}
	}
	return wrong
}

func (b Bounds) check(c *validate.Checks, patientID string, blames func(name string) bool) {
	for name, message := range b.complaintsOf(patientID, blames) {
		c.Reject(name, message)
	}
}

func (list ascending) disorder(b Bounds, blames func(name string) bool, wrong map[string]string) {
	for i, lower := range list {
		for _, upper := range list[i+1:] {
			low, high := b[lower.group][lower.field], b[upper.group][upper.field]
			if low == nil || high == nil || *low < *high || wrong[lower.Name()] != "" || wrong[upper.Name()] != "" {
				continue
			}
			if blames(lower.Name()) && !blames(upper.Name()) {
				wrong[lower.Name()] = fmt.Sprintf("Must be less than %s (%s).", upper.field, number(*high))
			} else {
				wrong[upper.Name()] = fmt.Sprintf("Must be greater than %s (%s).", lower.field, number(*low))
			}
		}
	}
}

// clone copies bounds two levels deep; the values are never changed in place.
func (b Bounds) clone() Bounds {
	copied := Bounds{}
	for group, fields := range b {
		copied[group] = maps.Clone(fields)
	}
	return copied
}
