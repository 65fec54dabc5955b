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
func (rs *ReadingStore) Retract(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = FindObservation(tx, id); err != nil || o.EnteredInError {
			return err
		}
		w := &retraction{readings: rs, tx: tx, observation: o, reason: reason, by: by, now: now}
		for _, step := range []func() error{
			w.mark, w.correctAlerts, w.updateDoubtfulTimeAlert, w.recheckIrregularHeartbeats, w.recheckEarlyWarnings, w.recheckSlowChanges, w.recallDelivery, w.recountDay,
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
	// hadDoubtfulTimeAlert: an open question about the device's clock was about the reading.
	hadDoubtfulTimeAlert bool
}

// mark stores the new status and increments the version of the FHIR form.
func (r *retraction) mark() error {
	version := 0
	if r.observation.FHIRStatus != "" {
		version = r.observation.FHIRVersion + 1
	}
	if err := collections.SetEnteredInError(r.tx, r.observation.ID, r.by.Email, r.reason, version, r.now); err != nil {
		return err
	}
	return audit.Append(r.tx, audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: r.by, ResourceType: audit.ResourceObservation, ResourceID: r.observation.ID,
		PatientID: r.observation.PatientID, Reason: r.reason,
	}, r.now)
}

// recallDelivery cancels the delivery, or queues an update of the EMR's copy.
func (r *retraction) recallDelivery() error {
	zone, err := collections.ZoneOfPatient(r.tx, r.observation.PatientID, r.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	return emr.Retract(r.tx, r.observation.ID, r.observation.PatientID, r.observation.Reading.MeasuredAt.In(zone), r.now)
}

// recountDay recounts the patient's day from its other readings.
func (r *retraction) recountDay() error {
	patient, reading := r.observation.PatientID, r.observation.Reading
	zones, err := collections.ZonesOfPatient(r.tx, patient, r.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	at := zones.Day(reading.MeasuredAt)
	day := collections.DayFilter{PatientID: patient, Kind: string(reading.Kind), First: at, Last: at}
	counted, err := countDays(r.tx, zones, day)
	if err != nil {
		return err
	}
	return replaceDays(r.tx, day, counted)
}

// moveDailyTotal moves the reading between the day's totals by status. If the day has no such total, because the practice's time zone
// changed, nothing moves: the sum over all days must stay right.
func (r *retraction) moveDailyTotal() error {
	reading := r.observation.Reading
	return collections.MoveTotalToError(r.tx, reading.MeasuredAt.In(r.readings.rules.PracticeZone).Format(time.DateOnly), string(reading.Kind),
		r.observation.status())
}

// rerank computes the patient's latest readings and snooze baselines again and ranks the patient.
func (r *retraction) rerank() error {
	var remaining []Observation
	add := func(column string, typedToo bool, kinds ...vitals.Kind) (typed bool, err error) {
		record, err := collections.LatestObservation(r.tx, r.observation.PatientID, column, kinds, typedToo)
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
	return triage.UpdateAndRescore(r.tx, r.now, func(tx core.App) (string, error) {
		if err := triage.ReplaceLatest(tx, r.observation.PatientID, latest); err != nil {
			return "", err
		}
		return r.observation.PatientID, triage.RetractFromSnoozes(tx, r.observation.PatientID, r.retracted, r.by, r.now)
	})
}

// promptRestOfRun raises the question about the rest of the run if the retracted reading was suspect.
func (r *retraction) promptRestOfRun() error {
	if r.observation.Review != Suspect {
		return nil
	}
	patient, err := loadPatientRow(r.tx, r.observation.PatientID)
	if err != nil {
		return err
	}
	b, err := newWriteBatch(r.tx)
	if err != nil {
		return err
	}
	if _, err := r.readings.promptRestOfRun(r.tx, b, r.observation, patient, r.by, r.now); err != nil {
		return err
	}
	return b.trail.Store()
}

// correctAlerts makes the patient's alerts those of the other readings, and cancels the escalations that the reading alone caused. One that
// other readings joined stays open for them.
func (r *retraction) correctAlerts() error {
	h, err := r.loadHistory()
	if err != nil {
		return err
	}
	if h.isSuspension = r.isSuspension; h.isSuspension {
		h.own = slices.DeleteFunc(h.own, isAnswered)
		h.compared = slices.DeleteFunc(h.compared, func(c comparedAlert) bool { return isAnswered(c.alert) })
	}
	r.retracted = h.own
	for _, c := range h.corrections(r.readings.rules, r.now) {
		if err := c.apply(r.tx, r.readings, r.by, r.now); err != nil {
			return err
		}
		if c.kind == correctToRetracted && !slices.Contains(h.own, c.alert) {
			r.retracted = append(r.retracted, c.alert)
		}
	}
	if r.isSuspension {
		return nil // a person ends the escalation
	}
	return escalations.RetractAlerts(r.tx, r.retracted, "reading was entered in error", r.by, r.now)
}

// isAnswered reports whether a person acknowledged or resolved an alert.
func isAnswered(alert *collections.Alert) bool {
	return slices.Contains([]alerts.Status{alerts.StatusAcknowledged, alerts.StatusResolved}, alerts.Status(alert.Status()))
}

// loadHistory reads what remains without the reading, which is marked already.
func (r *retraction) loadHistory() (h alertHistory, err error) {
	raised, err := collections.AlertsOfObservations(r.tx, r.observation.ID)
	if err != nil {
		return h, err
	}
	questions, err := sharedCuffQuestions(r.tx, r.observation)
	if err != nil {
		return h, err
	}
	h.own = append(raised[r.observation.ID], questions...)
	r.hadDoubtfulTimeAlert = slices.ContainsFunc(h.own, func(a *collections.Alert) bool {
		_, err := alerts.NextStatus(alerts.Status(a.Status()), alerts.Resolve)
		return err == nil && isAboutDoubtfulTime(a)
	})
	groups := groupsPresent(r.observation.Reading)
	if there, err := triage.IsMonitored(r.tx, r.observation.PatientID); err != nil || !there || len(groups) == 0 {
		return h, err // of an archived patient nothing is raised or reopened
	}
	if err := r.loadEarlierAlerts(&h, groups); err != nil {
		return h, err
	}
	from := r.observation.Reading.MeasuredAt
	if len(h.counted) > 0 {
		patient, err := collections.FindPatient(r.tx, r.observation.PatientID)
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
	others, err := measuredSince(r.tx, r.observation.PatientID, groups, from, r.observation.ID)
	if err != nil || len(others) == 0 {
		return h, err
	}
	first := r.observation.Reading // the baseline of changes begins before the first of them
	first.MeasuredAt = from
	snapshot, err := triage.ReadSnapshot(r.tx, r.observation.PatientID, &first, r.now)
	if err != nil {
		return h, err
	}
	h.sequence = evaluateAll(others, others, snapshot.Thresholds, slices.Concat(snapshot.Baseline, baselineValues(readingsOf(others)...)))
	return h, r.loadComparedAlerts(&h, others)
}

func isChangeGroup(group []*vitals.Parameter) bool { return group[0].Change != nil }

// loadComparedAlerts reads the open alerts of later readings that were compared with the retracted one, such as a weight gain over another
// person's weight.
func (r *retraction) loadComparedAlerts(h *alertHistory, others []Observation) error {
	var ids []string
	for _, o := range others {
		if slices.ContainsFunc(groupsPresent(o.Reading), isChangeGroup) && o.Reading.MeasuredAt.After(r.observation.Reading.MeasuredAt) {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	raised, err := collections.AlertsOfObservations(r.tx, ids...)
	if err != nil {
		return err
	}
	for i, o := range others {
		for _, alert := range raised[o.ID] {
			changes := slices.ContainsFunc(vitals.ChangeParameters, func(p *vitals.Parameter) bool { return p.Group == alert.Type() })
			if _, err := alerts.NextStatus(alerts.Status(alert.Status()), alerts.Resolve); err == nil && changes && !alerts.IsSlowChange(alert.Parameter()) {
				finding, _ := alerts.FindingByType(h.sequence[i].Findings, alert.Type())
				h.compared = append(h.compared, comparedAlert{alert, o, finding})
			}
		}
	}
	return nil
}

// recheckIrregularHeartbeats checks again whether irregular heartbeats recur, if the reading had the flag. It follows the other corrections,
// because the next warning depends on the last one that is not retracted.
func (r *retraction) recheckIrregularHeartbeats() error {
	enough := r.readings.rules.IrregularHeartbeats
	if enough == 0 || r.observation.Reading.Qualifier(vitals.IrregularHeartbeat) != vitals.Yes {
		return nil
	}
	if there, err := triage.IsMonitored(r.tx, r.observation.PatientID); err != nil || !there {
		return err
	}
	open, err := collections.OpenAlertsOf(r.tx, r.observation.PatientID, alerts.TypeIrregularHeartbeat)
	if err != nil {
		return err
	}
	for _, alert := range open {
		at := alert.MeasuredAt()
		flags, err := findHeartbeatFlags(r.tx, r.observation.PatientID, at, r.now)
		if err != nil || flags.hasRunAfter(at, enough) {
			return err // the warning is right without the reading
		}
		if err := retractionOf(alert).apply(r.tx, r.readings, r.by, r.now); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(r.retracted, func(a *collections.Alert) bool { return a.Type() == alerts.TypeIrregularHeartbeat }) {
		return nil
	}
	return r.warnOfNextRun(enough)
}

// warnOfNextRun raises the warning that the reading had raised at another reading, if enough flags remain.
func (r *retraction) warnOfNextRun(enough int) error {
	flags, err := findHeartbeatFlags(r.tx, r.observation.PatientID, r.observation.Reading.MeasuredAt, r.now)
	if err != nil {
		return err
	}
	at, found := flags.newRun(r.observation.Reading.MeasuredAt, enough)
	if !found {
		return nil
	}
	observations, err := collections.ObservationsAfter(r.tx, r.observation.PatientID, flaggedKinds(), at.Add(-time.Microsecond))
	if err != nil || len(observations) == 0 {
		return err
	}
	warning := alertDraft(ObservationFromRecord(observations[0]), recurringFinding(flags.countWithin(at)), false)
	warning.OmitsValue = true
	return r.readings.raiseAndAnnounce(r.tx, warning, vitals.Reading{}, alerts.Thresholds{}, r.now)
}
