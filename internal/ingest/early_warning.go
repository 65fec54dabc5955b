package ingest

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// NEWS2 excludes children under 16 and pregnancy, and has another scale for patients at risk
// of hypercapnia. Source: Royal College of Physicians, NEWS2, 2017; docs/decisions/alerts.md, "Early warning score".
const (
	youngestScored    = 16
	templateOfCOPD    = "copd"
	templatePregnancy = "pregnancy"
	// earlyWarningHistory is the longest run: after a day an acknowledgment no longer counts.
	earlyWarningHistory = 24 * time.Hour
)

// pregnancyCodes begin the diagnoses of pregnancy, childbirth and the puerperium. Source: ICD-10-CM, chapter 15, Z33.1, Z34, Z39, Z3A.
var pregnancyCodes = []string{"O", "Z33.1", "Z34", "Z39", "Z3A"}

// scoredKinds are the kinds that measure a scored parameter.
var scoredKinds = func() (kinds []vitals.Kind) {
	for _, p := range alerts.EarlyWarningParameters {
		for _, kind := range p.Kinds {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}()

// scoreTrigger is a reading that may change early warnings; coming are newer ones of its delivery.
type scoreTrigger struct {
	readingToEvaluate
	after      triage.PatientSnapshot
	isUnproven bool
	coming     []vitals.Reading
}

// updateEarlyWarning reconciles the early warnings with the readings after one was stored. For
// most readings it only searches values of the last hour with a doubtful time.
func (rs *ReadingStore) updateEarlyWarning(tx core.App, b *writeBatch, r scoreTrigger, now time.Time) error {
	reading := r.observation.Reading
	if !rs.rules.EarlyWarning || !slices.Contains(scoredKinds, reading.Kind) || r.isUnproven && isReplaced(reading, r.coming) {
		return nil
	}
	if may, err := r.mayChangeScore(tx, now); err != nil || !may {
		return err
	}
	changed, err := rs.correctEarlyWarnings(tx, b, scoredPatient{id: r.observation.PatientID, row: r.patient.row, coming: r.coming}, r.by, now)
	if err != nil || !changed {
		return err
	}
	r.patient.snapshot = nil // its alerts have changed
	_, err = triage.Rescore(tx, r.observation.PatientID, now)
	return err
}

// mayChangeScore reports whether an early warning is open, the latest values may raise one, or
// older values count: an out-of-order reading, or one with a doubtful time.
func (t scoreTrigger) mayChangeScore(tx core.App, now time.Time) (bool, error) {
	p, reading := t.after, t.observation.Reading
	adds := alerts.MayScore(reading)
	if slices.ContainsFunc(p.Open, func(a alerts.OpenAlert) bool { return a.Type == alerts.TypeEarlyWarning }) {
		return true, nil
	}
	for _, raised := range []vitals.Origin{vitals.OriginPatient, vitals.OriginDevice} {
		var recent []alerts.ScoredValue
		isNewest := true
		for _, parameter := range alerts.EarlyWarningParameters {
			value, at := p.Latest.ResolvingValue(parameter, raised)
			if value == nil || now.Sub(at) > earlyWarningHistory {
				continue
			}
			recent = append(recent, alerts.ScoredValue{Parameter: parameter, Value: *value, At: at})
			isNewest = isNewest && !at.After(reading.MeasuredAt)
		}
		isOutOfOrder := !isNewest && now.Sub(reading.MeasuredAt) <= time.Hour && adds
		if isOutOfOrder || alerts.MayBeEarlyWarning(recent) {
			return true, nil
		}
	}
	if t.isUnproven || !adds {
		return adds, nil
	}
	return collections.HasDoubtfulSince(tx, t.observation.PatientID, ReasonDeviceClock, now.Add(-time.Hour))
}

// scoredPatient is a patient with the values to score. Coming are readings of a delivery that are not yet stored.
type scoredPatient struct {
	id     string
	row    patientRow
	coming []vitals.Reading
}

// correctEarlyWarnings reconciles the stored early warnings with the readings of the last day: it
// ends those of an ended run, raises a missing one, and replaces a warning when the level rises.
func (rs *ReadingStore) correctEarlyWarnings(
	tx core.App, b *writeBatch, p scoredPatient, by audit.Actor, now time.Time,
) (changed bool, err error) {
	rules, history, isScored, err := rs.loadScoredValues(tx, p, now.Add(-earlyWarningHistory), now)
	if err != nil || !isScored {
		return false, err
	}
	raised, err := collections.AlertsMeasuredSince(tx, p.id, alerts.TypeEarlyWarning, now.Add(-earlyWarningHistory))
	if err != nil {
		return false, err
	}
	w := earlyWarningWriter{tx: tx, batch: b, patientID: p.id, row: p.row, by: by, now: now}
	run, lasts := rules.Run(history, now)
	var covering []*collections.Alert
	for _, alert := range raised {
		switch {
		case lasts && !alert.MeasuredAt().Before(run.Since):
			if isThere, err := w.correct(alert, rules, history); err != nil {
				return false, err
			} else if isThere {
				covering = append(covering, alert)
			}
		case alerts.Status(alert.Status()) == alerts.StatusActive:
			if err := w.end(alert, ""); err != nil {
				return false, err
			}
		}
	}
	if !lasts {
		run.Worst.Level = ""
	}
	if err := w.endOlder(rules, history, run.Worst.Level); err != nil {
		return false, err
	}
	if run.Worst.Level == "" && len(covering) == 0 { // its values are old, and the run lasts
		run.Worst = w.lowered
	}
	if run.Worst.Level != "" {
		err = w.raise(run.Worst, covering)
	}
	return w.changed, err
}

// endOlder ends active alerts of runs that began before the history, if the run is over or a new
// run of at least their level (successor) follows.
func (w *earlyWarningWriter) endOlder(rules alerts.EarlyWarningRules, history []alerts.ScoredValue, successor alerts.Level) error {
	open, err := collections.OpenAlertsOf(w.tx, w.patientID, alerts.TypeEarlyWarning)
	if err != nil {
		return err
	}
	for _, alert := range open {
		isOlder := alert.MeasuredAt().Before(w.now.Add(-earlyWarningHistory)) && alerts.Status(alert.Status()) == alerts.StatusActive
		if !isOlder {
			continue
		}
		reason := ""
		if successor == alerts.Critical || successor != "" && alert.Level() != string(alerts.Critical) {
			reason = alerts.ReasonSuperseded
		} else if successor != "" || !rules.HasEnded(alerts.ScoredParts(alert.ReportedValues()), alert.Origin() == string(vitals.OriginPatient), history) {
			continue
		}
		if err := w.end(alert, reason); err != nil {
			return err
		}
	}
	return nil
}

// loadScoredValues reads a patient's scored values since a time, and the rules for them; isScored is false for patients that the score is
// not for.
func (rs *ReadingStore) loadScoredValues(tx core.App, p scoredPatient, since, now time.Time) (
	rules alerts.EarlyWarningRules, history []alerts.ScoredValue, isScored bool, err error,
) {
	codes, own, err := collections.ScoringFacts(tx, p.id)
	if err != nil {
		return rules, nil, false, err
	}
	applied, err := collections.ParseAppliedTemplates(own.Templates)
	if err != nil {
		return rules, nil, false, err
	}
	if rs.isYoung(p.id, p.row, now) || isPregnant(codes, applied) {
		return rules, nil, false, nil
	}
	snapshot, err := triage.ReadSnapshot(tx, p.id, nil, now)
	if err != nil {
		return rules, nil, false, err
	}
	rules.InForce, rules.Scale2 = snapshot.Thresholds, isTemplateApplied(applied, templateOfCOPD)
	history, err = readScoredValues(tx, p.id, rules, since, now, p.coming)
	return rules, history, true, err
}

// isYoung reports whether the patient is under 16; an unknown age is an adult's.
func (rs *ReadingStore) isYoung(patientID string, row patientRow, now time.Time) bool {
	stored, err := collections.OpenValue(row.BirthDate, collections.Patients, collections.PatientDateOfBirth, patientID)
	if err != nil {
		return false
	}
	born, err := time.Parse(time.DateOnly, stored)
	today := now.In(collections.Zone(row.TimeZone, rs.rules.PracticeZone)).Format(time.DateOnly)
	return err == nil && today < born.AddDate(youngestScored, 0, 0).Format(time.DateOnly)
}

func isPregnant(codes []string, applied []collections.AppliedTemplate) bool {
	return isTemplateApplied(applied, templatePregnancy) || slices.ContainsFunc(codes, func(code string) bool {
		return slices.ContainsFunc(pregnancyCodes, func(begin string) bool { return strings.HasPrefix(code, begin) })
	})
}

// isTemplateApplied reports whether the template of a key, or a practice's variant of it, was applied.
func isTemplateApplied(applied []collections.AppliedTemplate, key string) bool {
	return slices.ContainsFunc(applied, func(t collections.AppliedTemplate) bool { return t.Key == key || strings.HasPrefix(t.Key, key+"_") })
}

// recheckEarlyWarnings corrects the early warnings after a scored reading was retracted.
// It retracts alerts that the remaining readings do not support, with their escalations.
func (r *retraction) recheckEarlyWarnings() error {
	if !r.readings.rules.EarlyWarning || !slices.Contains(scoredKinds, r.observation.Reading.Kind) {
		return nil
	}
	if there, err := triage.IsMonitored(r.tx, r.observation.PatientID); err != nil || !there {
		return err
	}
	since := r.now.Add(-earlyWarningHistory)
	raised, err := collections.AlertsMeasuredSince(r.tx, r.observation.PatientID, alerts.TypeEarlyWarning, since)
	if err != nil {
		return err
	}
	open, err := collections.OpenAlertsOf(r.tx, r.observation.PatientID, alerts.TypeEarlyWarning)
	if err != nil {
		return err
	}
	ownRetracted := slices.ContainsFunc(r.retracted, func(a *collections.Alert) bool { return a.Type() == alerts.TypeEarlyWarning })
	if len(raised) == 0 && len(open) == 0 && !ownRetracted {
		return nil
	}
	if len(open) > 0 && open[0].MeasuredAt().Before(since.Add(time.Hour)) { // the values of the hour before each must be loaded
		since = open[0].MeasuredAt().Add(-2 * time.Hour)
	}
	row, err := loadPatientRow(r.tx, r.observation.PatientID)
	if err != nil {
		return err
	}
	patient := scoredPatient{id: r.observation.PatientID, row: row}
	rules, history, isScored, err := r.readings.loadScoredValues(r.tx, patient, since, r.now)
	if err != nil || !isScored {
		return err
	}
	var unsupported []*collections.Alert
	for _, alert := range open {
		if rules.CallsFor(alerts.Level(alert.Level()), history, alert.MeasuredAt()) {
			continue
		}
		if err := retractionOf(alert).apply(r.tx, r.readings, r.by, r.now); err != nil {
			return err
		}
		unsupported = append(unsupported, alert)
	}
	r.retracted = append(r.retracted, unsupported...)
	if err := escalations.RetractAlerts(r.tx, unsupported, "reading was entered in error", r.by, r.now); err != nil {
		return err
	}
	b, err := newWriteBatch(r.tx)
	if err != nil {
		return err
	}
	if _, err := r.readings.correctEarlyWarnings(r.tx, b, patient, r.by, r.now); err != nil {
		return err
	}
	return b.trail.Store()
}
