package ingest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A broken cuff may report the same implausible values all day. Until a clinician acknowledges it, one alert per parameter aggregates them:
// the worst, the latest and the count. It is announced again when it gets worse. Each event stays in quarantine and is decided separately.
// Source: docs/decisions/observations.md, "Many implausible values".

// mergeIntoAlert adds an implausible reading to the open alert that aggregates its kind, and reports whether there is one.
func (e *Pipeline) mergeIntoAlert(tx core.App, c quarantinedReading, n alertDecision, now time.Time) (bool, error) {
	alert, err := findAggregate(tx, c, n, now)
	if err != nil || alert == nil {
		return false, err
	}
	aggregates, err := collections.AggregatesOfEvents(tx, alert.QuarantineID())
	if err != nil {
		return false, err
	}
	g := aggregates[alert.QuarantineID()]
	if g.Count == 0 {
		g = collections.Aggregate{
			Count: 1, Latest: rawJSON(alert.ReportedValues()), Notified: firstNotified(alert.ReportedValues(), alertValue(alert)), Message: alert.DisplayMessage(),
		}
	}
	for _, event := range []string{alert.QuarantineID(), c.eventID} {
		if err := collections.SetAggregateAlert(tx, event, alert.Id, c.patientID); err != nil {
			return false, err
		}
	}
	shouldRenotify, worse, err := c.needsRenotify(tx, n, g, now)
	if err != nil {
		return false, err
	}
	g.Count++
	var shown *collections.ShownEvent
	if c.isWorseThanShown(alert, n.draft.Finding) {
		shown, g.Message = c.shownValues(n.draft.Finding), n.draft.Finding.Message
	}
	if shouldRenotify {
		g.Notified = slices.Concat(firstNotified(c.reportedValues(), n.draft.Finding.Value), g.Notified)[:min(len(g.Notified)+1, maxNotified)]
	}
	latest, measured := c, c.Reading.MeasuredAt
	if measured.Before(alert.MeasuredAt()) { // measured before the latest one
		measured = alert.MeasuredAt()
		latest.Reading, _ = parseReportedValues(c.Reading.Kind, phi.Text(g.Latest))
	}
	g.Latest = rawJSON(latest.reportedValues())
	if err := alert.StoreAggregate(tx, g, latest.aggregateMessage(g), measured, shown, now); err != nil {
		return false, err
	}
	if !shouldRenotify {
		return true, nil
	}
	n.draft.WorseThanNotified = worse
	return true, n.renotify(tx, c.snapshot, alert.Id, now)
}

// findAggregate returns the open alert to merge an implausible reading into; nil for none. An acknowledged alert takes no more: a later
// reading is news.
func findAggregate(tx core.App, c quarantinedReading, n alertDecision, now time.Time) (*collections.Alert, error) {
	candidates, err := collections.AlertsToAggregate(tx, collections.AggregateKey{
		Patient: c.patientID, Device: c.Reading.DeviceID, Type: n.draft.Finding.Type, Parameter: n.draft.Finding.Parameter, Level: string(n.draft.Finding.Level),
		Origin: string(c.origin), Late: n.draft.Late, Closed: n.draft.Superseded, Since: now.Add(-recentWindow),
	})
	if err != nil {
		return nil, err
	}
	for _, alert := range candidates {
		if alert.TimeInDoubt() == n.draft.TimeInDoubt && n.stat == (alert.EscalationID() != "") {
			return alert, nil
		}
	}
	return nil, nil
}

// needsRenotify reports whether to announce the alert again: the reading is worse than the values last announced, or no escalation is open
// for it.
func (r quarantinedReading) needsRenotify(tx core.App, n alertDecision, g collections.Aggregate, now time.Time) (shouldRenotify, worse bool, err error) {
	switch {
	case n.draft.Superseded:
		return false, false, nil
	case !n.stat:
		worse = !slices.ContainsFunc(g.Notified, func(notified collections.NotifiedValues) bool { return !isFurtherOut(n.draft.Finding, notified.Value) })
		return worse, worse, nil
	}
	worse, err = r.isWorse(tx, now)
	_, open := r.snapshot.SystemEscalation()
	return worse || !open, worse, err
}

// isFurtherOut reports whether a value without a critical bound is further out of range than the announced one by a tenth of the range, or
// on the other side.
func isFurtherOut(f alerts.Finding, notified float64) bool {
	i := slices.IndexFunc(vitals.Parameters, func(p *vitals.Parameter) bool { return p.Name == f.Parameter })
	if i < 0 {
		return f.Value > notified
	}
	ends := vitals.Parameters[i].Range
	step := (ends.Max - ends.Min) / 10
	if f.Value < ends.Min {
		return notified > ends.Min || notified-f.Value >= step
	}
	return notified < ends.Max || f.Value-notified >= step
}

// isWorseThanShown reports whether the reading is worse than the values that the alert shows.
func (r quarantinedReading) isWorseThanShown(alert *collections.Alert, f alerts.Finding) bool {
	if strings.HasSuffix(f.Parameter, "_change") {
		return f.Value > alertValue(alert)
	}
	other := r
	other.Reading, other.OutOfRange = parseReportedValues(r.Reading.Kind, alert.ReportedValues())
	return r.worstValue().isFurtherThan(other.worstValue())
}

// worstValue returns the worst value of the reading.
func (r quarantinedReading) worstValue() (worst boundCheck) {
	for _, p := range vitals.Parameters {
		if value := r.Reading.Value(p); value != nil {
			if b := r.compareToBounds(p, *value); worst.parameter == nil || b.isWorseThan(worst) {
				worst = b
			}
		}
	}
	return worst
}

// isFurtherThan is isWorseThan, with ties decided by the distance from the limit.
func (b boundCheck) isFurtherThan(o boundCheck) bool {
	if b.isWorseThan(o) || o.isWorseThan(b) {
		return b.isWorseThan(o)
	}
	return math.Abs(b.value-b.limit) > math.Abs(o.value-o.limit)
}

// parseReportedValues decodes reported values by column.
func parseReportedValues(kind vitals.Kind, stored phi.Text) (r vitals.Reading, outside vitals.OutOfRange) {
	var values map[string]float64
	if json.Unmarshal([]byte(stored.Reveal()), &values) != nil {
		return r, nil
	}
	r.Kind = kind
	for _, p := range vitals.Parameters {
		if value, reported := values[p.Column]; reported {
			r, outside = r.With(p, value), append(outside, p.OutOfRange(value)...)
		}
	}
	return r, outside
}

// shownValues returns the reading as an alert shows it.
func (r quarantinedReading) shownValues(f alerts.Finding) *collections.ShownEvent {
	return &collections.ShownEvent{EventID: r.eventID, Values: r.reportedValues(), Value: f.Value, Threshold: f.Threshold}
}

// aggregateMessage returns the message about several events, of which this is the latest.
func (r quarantinedReading) aggregateMessage(g collections.Aggregate) phi.Text {
	if g.Count == 1 {
		return phi.Text(g.Message)
	}
	var words []string
	for _, p := range vitals.Parameters {
		if value := r.Reading.Value(p); value != nil {
			words = append(words, p.Text(*value))
		}
	}
	return phi.Text(fmt.Sprintf("%s Reported %d times, this is the worst; the latest: %s.", g.Message, g.Count, strings.Join(words, ", ")))
}

// maxAggregated bounds how many of an alert's events are read again besides the worst. maxNotified bounds the stored announced values:
// there are no more steps of a tenth between both ends of what can be measured.
const maxAggregated, maxNotified = 200, 20

// removeFromAlert removes a decided event from its aggregate alert, and reports whether the alert stays open for others.
func (e *Pipeline) removeFromAlert(tx core.App, alert *collections.Alert, eventID string, now time.Time) (kept bool, err error) {
	if alert.Type() != alerts.TypeImplausibleReading {
		return false, nil
	}
	remaining, err := collections.AggregatedEvents(tx, alert.Id)
	remaining = slices.DeleteFunc(remaining, func(id string) bool { return id == eventID })
	if err != nil || len(remaining) == 0 {
		return false, err
	}
	snapshot, err := triage.ReadSnapshot(tx, alert.PatientID(), nil, now)
	if err != nil {
		return false, err
	}
	var worst, latest *quarantinedReading
	checked := remaining[:min(len(remaining), maxAggregated)]
	if slices.Contains(remaining[len(checked):], alert.QuarantineID()) { // the worst counts at any age
		checked = append(slices.Clone(checked), alert.QuarantineID())
	}
	for _, id := range checked {
		c, err := e.pendingReading(tx, id, alert.PatientID(), snapshot, now)
		if err != nil {
			return false, err
		}
		if c == nil {
			continue
		}
		if latest == nil || c.Reading.MeasuredAt.After(latest.Reading.MeasuredAt) {
			latest = c
		}
		if worst == nil || c.worstValue().isFurtherThan(worst.worstValue()) {
			worst = c
		}
	}
	if worst == nil {
		return true, nil // the others are unreadable: leave the alert as it is
	}
	finding := worst.decideAlert(alert.Late(), false).draft.Finding
	g := collections.Aggregate{Count: len(remaining), Latest: rawJSON(latest.reportedValues()), Notified: firstNotified(worst.reportedValues(), finding.Value), Message: finding.Message}
	return true, alert.StoreAggregate(tx, g, latest.aggregateMessage(g), latest.Reading.MeasuredAt, worst.shownValues(finding), now)
}

// firstNotified returns the list of one announced value.
func firstNotified(values phi.Text, value float64) []collections.NotifiedValues {
	return []collections.NotifiedValues{{Values: rawJSON(values), Value: value}}
}

func rawJSON(values phi.Text) json.RawMessage { return json.RawMessage(values.Reveal()) }

func alertValue(alert *collections.Alert) float64 {
	if value := alert.Value(); value != nil {
		return *value
	}
	return 0
}
