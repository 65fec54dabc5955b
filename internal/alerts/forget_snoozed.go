package alerts

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Forget takes alerts that were taken back out of what a snooze of critical alerts knows, inside the caller's transaction: it then knows what
// it would have known without them, and never more than before. What is left is the rest, and forgot reports whether that is less.
// Source: docs/decisions/alerts.md, "Breaking through a snooze".
func Forget(tx core.App, snooze *collections.Snooze, gone []*collections.Alert) (left []Known, forgot bool, err error) {
	known := ParseKnown(snooze.Known())
	if !snooze.IncludeCritical() || len(known) == 0 {
		return known, false, nil
	}
	begun := snooze.CreatedAt()
	covered, err := collections.KnownAlertsAt(tx, snooze.PatientID(), snooze.Type(), begun, begun.Add(-knownOpen), begun.Add(-knownAcknowledged))
	if err != nil {
		return nil, false, err
	}
	among := func(a collections.KnownAlert) bool {
		return slices.ContainsFunc(gone, func(g *collections.Alert) bool { return g.Id == a.ID })
	}
	if !slices.ContainsFunc(covered, among) {
		return known, false, nil
	}
	covered = slices.DeleteFunc(covered, func(a collections.KnownAlert) bool { return a.Withdrawn || among(a) })
	rest, err := knownOf(tx, snooze.PatientID(), snooze.Type(), covered)
	if err != nil {
		return nil, false, err
	}
	left = milder(known, rest)
	if slices.Equal(left, known) {
		return known, false, nil
	}
	return left, true, snooze.StoreKnown(tx, left)
}

// milder are the values that are known of both, each the milder one.
func milder(known, rest []Known) (both []Known) {
	for _, k := range known {
		for _, r := range rest {
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

// Beyond reports whether an alert is about more than what is known, as [Quiet] would have found.
func (o Open) Beyond(known []Known, t Thresholds) bool {
	var found []extreme
	for _, v := range o.Values() {
		if v.Of.Change == nil {
			found = append(found, t.extreme(v.Of, v.Value)...)
			continue
		}
		if bound := t.Change(v.Of).CriticalChange; bound != nil {
			found = append(found, changed(o.Parameter, v.Value, *bound))
		}
	}
	return worse(found, known, false)
}

// EndForgotten ends a snooze whose reason was taken back, in the caller's transaction.
func EndForgotten(tx core.App, snooze *collections.Snooze, by audit.Actor, now time.Time) error {
	if err := snooze.End(tx, authorOf(by), now); err != nil {
		return err
	}
	return noteSnooze(tx, audit.SnoozeEnd, snooze, "", nil, by, now)
}
