package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Retract marks an observation as entered in error and reverses all its effects in one transaction. Nothing is deleted; repeating it
// changes nothing. Fault: not_found. Source: docs/decisions/observations.md, "Retracting a reading".
func (e *ReadingStore) Retract(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = FindObservation(tx, id); err != nil || o.EnteredInError {
			return err
		}
		w := &retraction{readings: e, tx: tx, observation: o, reason: reason, by: by, now: now}
		for _, step := range []func() error{
			w.mark, w.correctAlerts, w.updateClockQuestion, w.recheckIrregularHeartbeats, w.recheckEarlyWarnings, w.recheckSlowChanges, w.recallDelivery, w.recountDay,
			w.moveDailyTotal, w.promptRestOfRun, w.rerank,
		} {
			if err := step(); err != nil {
				return err
			}
		}
		o, err = FindObservation(tx, id)
		return err
	})
	return o, err
}

// retraction is the retraction of one observation.
type retraction struct {
	readings    *ReadingStore
	tx          core.App
	observation Observation
	reason      phi.Text
	by          audit.Actor
	now         time.Time
	// isSuspension: the reading is suspect from now on, and was not entered in error.
	isSuspension bool
	// retracted are the alerts of the reading, and those of others that were compared with it.
	retracted []*collections.Alert
	// hadClockQuestion: an open question about the device's clock was about the reading.
	hadClockQuestion bool
}

// mark stores the new status and increments the version of the FHIR form.
func (w *retraction) mark() error {
	version := 0
	if w.observation.FHIRStatus != "" {
		version = w.observation.FHIRVersion + 1
	}
	if err := collections.SetEnteredInError(w.tx, w.observation.ID, w.by.Email, w.reason, version, w.now); err != nil {
		return err
	}
	return audit.Append(w.tx, audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: w.by, ResourceType: audit.ResourceObservation, ResourceID: w.observation.ID,
		PatientID: w.observation.PatientID, Reason: w.reason,
	}, w.now)
}

// recallDelivery cancels the delivery, or queues an update of the EMR's copy.
func (w *retraction) recallDelivery() error {
	zone, err := collections.ZoneOfPatient(w.tx, w.observation.PatientID, w.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	return emr.Retract(w.tx, w.observation.ID, w.observation.PatientID, w.observation.Reading.MeasuredAt.In(zone), w.now)
}

// recountDay recounts the patient's day from its other readings.
func (w *retraction) recountDay() error {
	patient, reading := w.observation.PatientID, w.observation.Reading
	zone, err := collections.ZoneOfPatient(w.tx, patient, w.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	at := reading.MeasuredAt.In(zone)
	day := collections.DayFilter{
		PatientID: patient, Kind: string(reading.Kind), From: collections.StartOfDay(at), To: collections.StartOfNextDay(at),
	}
	counted, err := countDays(w.tx, zone, day)
	if err != nil {
		return err
	}
	return replaceDays(w.tx, day, counted)
}

// moveDailyTotal moves the reading between the day's totals by status. If the day has no such total, because the practice's time zone
// changed, nothing moves: the sum over all days must stay right.
func (w *retraction) moveDailyTotal() error {
	reading := w.observation.Reading
	return collections.MoveTotalToError(w.tx, reading.MeasuredAt.In(w.readings.rules.PracticeZone).Format(time.DateOnly), string(reading.Kind),
		w.observation.status())
}

// rerank computes the patient's latest readings and snooze baselines again and ranks the patient.
func (w *retraction) rerank() error {
	var remaining []Observation
	add := func(column string, typedToo bool, kinds ...vitals.Kind) (typed bool, err error) {
		record, err := collections.LatestObservation(w.tx, w.observation.PatientID, column, kinds, typedToo)
		if err != nil || record == nil {
			return false, err
		}
		o := ObservationFromRecord(record)
		remaining = append(remaining, o)
		return o.Origin == vitals.OriginPatient, nil
	}
	for _, kind := range vitals.Kinds {
		if _, err := add("", true, kind); err != nil {
			return err
		}
	}
	for _, p := range vitals.Parameters {
		if p.Group == "" {
			continue
		}
		typed, err := add(p.Column, true, p.Kinds...)
		if err == nil && typed { // an earlier device reading may be shown next to it
			_, err = add(p.Column, false, p.Kinds...)
		}
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(remaining, func(a, b Observation) int {
		return cmp.Or(a.Reading.MeasuredAt.Compare(b.Reading.MeasuredAt), a.CreatedAt.Compare(b.CreatedAt))
	})
	var latest triage.Latest
	for _, o := range remaining {
		latest = latest.With(o.Reading, o.Origin)
	}
	return triage.UpdateAndRescore(w.tx, w.now, func(tx core.App) (string, error) {
		if err := triage.ReplaceLatest(tx, w.observation.PatientID, latest); err != nil {
			return "", err
		}
		return w.observation.PatientID, triage.RetractFromSnoozes(tx, w.observation.PatientID, w.retracted, w.by, w.now)
	})
}

// promptRestOfRun raises the question about the rest of the run if the retracted reading was suspect.
func (w *retraction) promptRestOfRun() error {
	if w.observation.Review != Suspect {
		return nil
	}
	patient, err := loadPatientRow(w.tx, w.observation.PatientID)
	if err != nil {
		return err
	}
	b, err := newWriteBatch(w.tx)
	if err != nil {
		return err
	}
	if _, err := w.readings.promptRestOfRun(w.tx, b, w.observation, patient, w.by, w.now); err != nil {
		return err
	}
	return b.trail.Store()
}

// correctAlerts makes the patient's alerts those of the other readings, and cancels the escalations that the reading alone caused. One that
// other readings joined stays open for them.
func (w *retraction) correctAlerts() error {
	h, err := w.loadHistory()
	if err != nil {
		return err
	}
	if h.isSuspension = w.isSuspension; h.isSuspension {
		h.own = slices.DeleteFunc(h.own, isAnswered)
		h.compared = slices.DeleteFunc(h.compared, func(c comparedAlert) bool { return isAnswered(c.alert) })
	}
	w.retracted = h.own
	for _, c := range h.corrections(w.readings.rules, w.now) {
		if err := c.apply(w.tx, w.readings, w.by, w.now); err != nil {
			return err
		}
		if c.kind == correctToRetracted && !slices.Contains(h.own, c.alert) {
			w.retracted = append(w.retracted, c.alert)
		}
	}
	if w.isSuspension {
		return nil // a person ends the escalation
	}
	return escalations.RetractAlerts(w.tx, w.retracted, "reading was entered in error", w.by, w.now)
}

// isAnswered reports whether a person acknowledged or resolved an alert.
func isAnswered(alert *collections.Alert) bool {
	return slices.Contains([]alerts.Status{alerts.StatusAcknowledged, alerts.StatusResolved}, alerts.Status(alert.Status()))
}

// loadHistory reads what remains without the reading, which is marked already.
func (w *retraction) loadHistory() (h alertHistory, err error) {
	raised, err := collections.AlertsOfObservations(w.tx, w.observation.ID)
	if err != nil {
		return h, err
	}
	questions, err := sharedCuffQuestions(w.tx, w.observation)
	if err != nil {
		return h, err
	}
	h.own = append(raised[w.observation.ID], questions...)
	w.hadClockQuestion = slices.ContainsFunc(h.own, func(a *collections.Alert) bool {
		_, err := alerts.Next(alerts.Status(a.Status()), alerts.Resolve)
		return err == nil && isAboutDoubtfulTime(a)
	})
	groups := groupsPresent(w.observation.Reading)
	if there, err := triage.IsMonitored(w.tx, w.observation.PatientID); err != nil || !there || len(groups) == 0 {
		return h, err // of an archived patient nothing is raised or reopened
	}
	if err := w.loadEarlierAlerts(&h, groups); err != nil {
		return h, err
	}
	from := w.observation.Reading.MeasuredAt
	if len(h.counted) > 0 {
		patient, err := collections.FindPatient(w.tx, w.observation.PatientID)
		if err != nil && !collections.IsNotFound(err) {
			return h, err
		}
		if err == nil {
			h.schedule = patient.MonitoringSchedule()
		}
		from = h.counted[0].MeasuredAt()
	} else if !slices.ContainsFunc(groups, isChangeGroup) {
		return h, nil
	}
	others, err := measuredSince(w.tx, w.observation.PatientID, groups, from, w.observation.ID)
	if err != nil || len(others) == 0 {
		return h, err
	}
	first := w.observation.Reading // the baseline of changes begins before the first of them
	first.MeasuredAt = from
	snapshot, err := triage.ReadSnapshot(w.tx, w.observation.PatientID, &first, w.now)
	if err != nil {
		return h, err
	}
	h.sequence = evaluateAll(others, others, snapshot.Thresholds, slices.Concat(snapshot.Baseline, baselineValues(readingsOf(others)...)))
	return h, w.loadComparedAlerts(&h, others)
}

func isChangeGroup(group []*vitals.Parameter) bool { return group[0].Change != nil }

// loadComparedAlerts reads the open alerts of later readings that were compared with the retracted one, such as a weight gain over another
// person's weight.
func (w *retraction) loadComparedAlerts(h *alertHistory, others []Observation) error {
	var ids []string
	for _, o := range others {
		if slices.ContainsFunc(groupsPresent(o.Reading), isChangeGroup) && o.Reading.MeasuredAt.After(w.observation.Reading.MeasuredAt) {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	raised, err := collections.AlertsOfObservations(w.tx, ids...)
	if err != nil {
		return err
	}
	for i, o := range others {
		for _, alert := range raised[o.ID] {
			changes := slices.ContainsFunc(vitals.ChangeWatched, func(p *vitals.Parameter) bool { return p.Group == alert.Type() })
			if _, err := alerts.Next(alerts.Status(alert.Status()), alerts.Resolve); err == nil && changes && !alerts.IsSlowChange(alert.Parameter()) {
				finding, _ := alerts.FindingOf(h.sequence[i].Findings, alert.Type())
				h.compared = append(h.compared, comparedAlert{alert, o, finding})
			}
		}
	}
	return nil
}

// recheckIrregularHeartbeats checks again whether irregular heartbeats recur, if the reading had the flag. It follows the other corrections,
// because the next warning depends on the last one that is not retracted.
func (w *retraction) recheckIrregularHeartbeats() error {
	enough := w.readings.rules.IrregularHeartbeats
	if enough == 0 || w.observation.Reading.Qualifier(vitals.IrregularHeartbeat) != vitals.Yes {
		return nil
	}
	if there, err := triage.IsMonitored(w.tx, w.observation.PatientID); err != nil || !there {
		return err
	}
	open, err := collections.OpenAlertsOf(w.tx, w.observation.PatientID, alerts.TypeIrregularHeartbeat)
	if err != nil {
		return err
	}
	for _, alert := range open {
		at := alert.MeasuredAt()
		flags, err := findHeartbeatFlags(w.tx, w.observation.PatientID, at, w.now)
		if err != nil || flags.hasRunAfter(at, enough) {
			return err // the warning is right without the reading
		}
		if err := retractionOf(alert).apply(w.tx, w.readings, w.by, w.now); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(w.retracted, func(a *collections.Alert) bool { return a.Type() == alerts.TypeIrregularHeartbeat }) {
		return nil
	}
	return w.warnOfNextRun(enough)
}

// warnOfNextRun raises the warning that the reading had raised at another reading, if enough flags remain.
func (w *retraction) warnOfNextRun(enough int) error {
	flags, err := findHeartbeatFlags(w.tx, w.observation.PatientID, w.observation.Reading.MeasuredAt, w.now)
	if err != nil {
		return err
	}
	at, found := flags.newRun(w.observation.Reading.MeasuredAt, enough)
	if !found {
		return nil
	}
	observations, err := collections.ObservationsAfter(w.tx, w.observation.PatientID, flaggedKinds(), at.Add(-time.Microsecond))
	if err != nil || len(observations) == 0 {
		return err
	}
	warning := alertDraft(ObservationFromRecord(observations[0]), recurringFinding(flags.countWithin(at)), false)
	warning.WithoutValue = true
	return w.readings.raiseAndAnnounce(w.tx, warning, vitals.Reading{}, alerts.Thresholds{}, w.now)
}
