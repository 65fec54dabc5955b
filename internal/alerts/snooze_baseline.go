package alerts

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// RetractFromBaseline removes retracted alerts from the baseline of a snooze of critical alerts, in the caller's transaction. The result is
// the baseline without them, never above the current one; changed reports whether it shrank. Source: docs/decisions/alerts.md, "Breaking
// through a snooze".
func RetractFromBaseline(tx core.App, snooze *collections.Snooze, retracted []*collections.Alert) (remaining []WorstValue, changed bool, err error) {
	found := ParseWorstValues(snooze.Baseline())
	if !snooze.IncludeCritical() || len(found) == 0 {
		return found, false, nil
	}
	begun := snooze.CreatedAt()
	covered, err := collections.BaselineAlertsAt(tx, snooze.PatientID(), snooze.Type(), begun, begun.Add(-baselineOpen), begun.Add(-baselineAcknowledged))
	if err != nil {
		return nil, false, err
	}
	among := func(a collections.BaselineAlert) bool {
		return slices.ContainsFunc(retracted, func(g *collections.Alert) bool { return g.Id == a.ID })
	}
	if !slices.ContainsFunc(covered, among) {
		return found, false, nil
	}
	covered = slices.DeleteFunc(covered, func(a collections.BaselineAlert) bool { return a.Retracted || among(a) })
	remainder, err := worstValuesOf(tx, snooze.PatientID(), snooze.Type(), covered)
	if err != nil {
		return nil, false, err
	}
	remaining = commonMilder(found, remainder)
	if slices.Equal(remaining, found) {
		return found, false, nil
	}
	return remaining, true, snooze.StoreBaseline(tx, remaining)
}

// commonMilder returns the values that are in both lists, each the milder one.
func commonMilder(found, remainder []WorstValue) (both []WorstValue) {
	for _, k := range found {
		for _, r := range remainder {
			if r.Parameter != k.Parameter || r.High != k.High {
				continue
			}
			if k.High {
				k.Value = min(k.Value, r.Value)
			} else {
				k.Value = max(k.Value, r.Value)
			}
			both = append(both, k)
		}
	}
	return both
}

// Exceeds reports whether an alert exceeds the baseline, as [SuppressedBy] would decide.
func (o Open) Exceeds(ok []WorstValue, t Thresholds) bool {
	var found []criticalValue
	for _, v := range o.Values() {
		if v.Of.Change == nil {
			found = append(found, t.criticalValue(v.Of, v.Value)...)
			continue
		}
		if bound := t.Change(v.Of).CriticalChange; bound != nil {
			found = append(found, criticalChange(o.Parameter, v.Value, *bound))
		}
	}
	return isWorse(found, ok, false)
}

// EndSnoozeNow ends a snooze before its time, in the caller's transaction.
func EndSnoozeNow(tx core.App, snooze *collections.Snooze, by audit.Actor, now time.Time) error {
	if err := snooze.End(tx, authorOf(by), now); err != nil {
		return err
	}
	return auditSnooze(tx, audit.SnoozeEnd, snooze, "", nil, by, now)
}
