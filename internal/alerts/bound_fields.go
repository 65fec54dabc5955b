package alerts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// boundField is one bound that can be set: its place in the stored form, its name in the change log and its allowed values.
type boundField struct {
	group, field string
	logName      string
	within       vitals.Range
	isInteger    bool
	// mayEqual names a greater bound that may have the same value.
	mayEqual string
	inForce  func(Thresholds) *float64
}

// Name returns the bound's name in request bodies.
func (f boundField) Name() string { return f.group + "." + f.field }

// Groups lists the threshold groups in the contract's order.
var Groups = func() (groups []string) {
	for _, p := range vitals.ThresholdParameters {
		if !slices.Contains(groups, p.Group) {
			groups = append(groups, p.Group)
		}
	}
	return groups
}()

// ascending lists bounds of one parameter, each of which must be greater than the one before.
type ascending []boundField

// boundOrders lists all bounds that can be set, grouped by the order they must keep.
// Source: docs/decisions/alerts.md, "Extra threshold fields" and "Change-log field names".
var boundOrders = func() (all []ascending) {
	for _, p := range vitals.ThresholdParameters {
		if p.Change != nil {
			all = append(all, changeFields(p)...)
			continue
		}
		var list ascending
		for _, side := range p.Bounds {
			f := boundField{group: p.Group, field: p.Prefix + string(side), logName: p.Name + "_" + string(side), within: p.Range}
			f.inForce = func(t Thresholds) *float64 { return t.Limits(p).Bound(side) }
			if side == vitals.FastingHigh {
				f.mayEqual = p.Prefix + string(vitals.High)
			}
			list = append(list, f)
		}
		all = append(all, list)
	}
	return all
}()

func changeFields(p *vitals.Parameter) []ascending {
	field := func(name string, within vitals.Range, whole bool, inForce func(ChangeRule) *float64) boundField {
		return boundField{p.Group, name, p.Name + "_" + name, within, whole, "", func(t Thresholds) *float64 { return inForce(t.Change(p)) }}
	}
	fields := []ascending{
		{
			field(p.Change.Threshold, p.Change.ThresholdRange, false, func(r ChangeRule) *float64 { return r.Change }),
			field(p.Change.Critical, p.Change.CriticalRange, false, func(r ChangeRule) *float64 { return r.CriticalChange }),
		},
		{field(p.Change.Window, p.Change.WindowRange, true, func(r ChangeRule) *float64 { return new(float64(r.WindowDays)) })},
		{field(p.Change.Daily, p.Change.DailyRange, false, func(r ChangeRule) *float64 { return r.Daily })},
		{field(p.Change.Target, p.Change.TargetRange, false, func(r ChangeRule) *float64 { return r.Target })},
		{field(p.Change.Over, p.Change.OverRange, false, func(r ChangeRule) *float64 { return r.Over })},
		{
			field(p.Change.SlowGain, p.Change.SlowGainRange, false, func(r ChangeRule) *float64 { return r.SlowGain }),
			field(p.Change.SlowCritical, p.Change.SlowCriticalRange, false, func(r ChangeRule) *float64 { return r.SlowCritical }),
		},
	}
	for _, loss := range p.Change.Losses {
		fields = append(fields, ascending{field(loss.Field, loss.Range, false, func(r ChangeRule) *float64 { return r.Loss(loss.Days) })})
	}
	return fields
}

// boundFields lists all bounds that can be set.
var boundFields = slices.Concat(boundOrders...)

// ChangeLogFields returns the field names of the change log.
func ChangeLogFields() (names []string) {
	for _, f := range boundFields {
		names = append(names, f.logName)
	}
	return names
}

// problem describes why a value is not allowed; "" if it is.
func (f boundField) problem(value float64) string {
	switch {
	case !f.within.Contains(value):
		return f.within.Message()
	case f.isInteger && value != float64(int(value)):
		return "A valid integer is required."
	}
	return ""
}

// The errors about members that are no bounds.
const (
	noSuchGroup = "There is no such group."
	noSuchBound = "There is no such bound."
)

// Problems returns the errors in stored bounds, by name: unknown groups and fields, values out of range, and values that break the order
// critical_low < low < fasting_high ≤ high < critical. Of two contradicting bounds it reports the one for which isChanged is true, otherwise the upper.
func (b Bounds) Problems(isChanged func(name string) bool) map[string]string {
	wrong := map[string]string{}
	found := map[string]bool{}
	for _, f := range boundFields {
		found[f.Name()] = true
		if value := b[f.group][f.field]; value != nil {
			if message := f.problem(*value); message != "" {
				wrong[f.Name()] = message
			}
		}
	}
	for group, fields := range b {
		if !slices.Contains(Groups, group) {
			wrong[group] = noSuchGroup
			continue
		}
		for field := range fields {
			if name := group + "." + field; !found[name] {
				wrong[name] = noSuchBound
			}
		}
	}
	for _, list := range boundOrders {
		list.checkOrder(b, isChanged, wrong)
	}
	return wrong
}

// problemsOf also rejects a target for the practice (patientID ""): targets belong to patients.
func (b Bounds) problemsOf(patientID string, isChanged func(name string) bool) map[string]string {
	wrong := b.Problems(isChanged)
	for _, p := range vitals.ChangeParameters {
		if patientID == "" && b[p.Group][p.Change.Target] != nil {
			wrong[p.Group+"."+p.Change.Target] = "A target can only be set for a patient."
		}
	}
	return wrong
}

func (b Bounds) check(c *validate.Checks, patientID string, isChanged func(name string) bool) {
	for name, message := range b.problemsOf(patientID, isChanged) {
		c.Reject(name, message)
	}
}

func (a ascending) checkOrder(b Bounds, isChanged func(name string) bool, wrong map[string]string) {
	for i, lower := range a {
		for _, upper := range a[i+1:] {
			low, high := b[lower.group][lower.field], b[upper.group][upper.field]
			if low == nil || high == nil || *low < *high || *low == *high && lower.mayEqual == upper.field || wrong[lower.Name()] != "" || wrong[upper.Name()] != "" {
				continue
			}
			switch mayEqual := lower.mayEqual == upper.field; {
			case mayEqual && isChanged(upper.Name()) && !isChanged(lower.Name()):
				wrong[upper.Name()] = fmt.Sprintf("Must not be less than %s (%s).", lower.field, vitals.FormatNumber(*low))
			case mayEqual:
				wrong[lower.Name()] = fmt.Sprintf("Must not be greater than %s (%s).", upper.field, vitals.FormatNumber(*high))
			case isChanged(lower.Name()) && !isChanged(upper.Name()):
				wrong[lower.Name()] = fmt.Sprintf("Must be less than %s (%s).", upper.field, vitals.FormatNumber(*high))
			default:
				wrong[upper.Name()] = fmt.Sprintf("Must be greater than %s (%s).", lower.field, vitals.FormatNumber(*low))
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
