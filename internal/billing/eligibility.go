package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// EligibilityCheck is one condition of eligibility.
type EligibilityCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Eligibility reports whether a patient may be billed today, with each condition.
func (e *Engine) Eligibility(app core.App, patientID string, now time.Time) (eligible bool, checks []EligibilityCheck, err error) {
	patients, err := e.loadFacts(app, []string{patientID}, e.Day(now))
	if err != nil {
		return false, nil, err
	}
	f, today := patients[patientID], e.Day(now)
	missing := e.missingItems(f, today)
	isMissing := func(item string) bool { return slices.Contains(missing, item) }
	add := func(name string, ok bool, yes, no string) {
		if ok {
			no = yes
		}
		checks = append(checks, EligibilityCheck{name, ok, no})
	}
	add("enrolment", !isMissing(NotActive), "The patient is active.", "The patient is archived.")
	add("consent", !isMissing(MissingConsent), "Consent to monitoring is in force, or is not required.", "No consent to monitoring is in force.")
	add("diagnosis", !isMissing(MissingDiagnosis), "A diagnosis is on record.", "No diagnosis is on record.")
	add("device", f.hasDevice(), "A device is assigned.", "No device is assigned.")
	_, isTaught := f.setupOf(today)
	add("setup", isTaught, "The setup was recorded.", "No setup is recorded; 99453 cannot be billed.")
	return len(missing) == 0, checks, nil
}

// EligiblePatients reports which patients may be billed today.
func (e *Engine) EligiblePatients(app core.App, ids []string, now time.Time) (map[string]bool, error) {
	today, eligible := e.Day(now), map[string]bool{}
	for some := range slices.Chunk(ids, chunkSize) {
		patients, err := e.loadFacts(app, some, today)
		if err != nil {
			return nil, err
		}
		for id, f := range patients {
			eligible[id] = len(e.missingItems(f, today)) == 0
		}
	}
	return eligible, nil
}

// missingItems returns the items that block billing a service on a day.
func (e *Engine) missingItems(f *patientFacts, day string) (items []string) {
	if !f.activeOn(day) {
		items = append(items, NotActive)
	}
	if e.RequireConsent && !f.hasConsentOn(day) {
		items = append(items, MissingConsent)
	}
	if len(f.diagnoses) == 0 {
		items = append(items, MissingDiagnosis)
	}
	return items
}

// applyEligibility adds warnings to a draft, or returns why it is skipped.
func (e *Engine) applyEligibility(f *patientFacts, d *entryDraft, lenient bool) *SkippedEntry {
	missing := e.missingItems(f, d.service)
	for _, item := range missing {
		if item == NotActive || !lenient {
			return &SkippedEntry{f.id, d.code, item}
		}
	}
	d.warnings = append(d.warnings, missing...)
	return nil
}

// consentedDays returns which days of a period count: if consent was in force on some, only those. If there was none at all, every day counts
// here, so that the missing consent is reported together with the counts. Source: docs/decisions/billing.md, "Consent in mid-period".
func (e *Engine) consentedDays(f *patientFacts, period Span) func(day string) bool {
	if !e.RequireConsent || !slices.ContainsFunc(f.consents, func(s Span) bool { return s.OverlapsOpen(period) }) {
		return func(string) bool { return true }
	}
	return f.hasConsentOn
}

// countedDays returns which days of a period count: those with monitoring and consent.
func (e *Engine) countedDays(f *patientFacts, period Span) func(day string) bool {
	if f.hasConsentThroughout(period) {
		return f.monitoredOn
	}
	isConsented := e.consentedDays(f, period)
	return func(day string) bool { return f.monitoredOn(day) && isConsented(day) }
}

// Readiness is what blocks billing for a patient today, and the state of the device.
type Readiness struct {
	Missing      []string // NotActive, MissingConsent, MissingDiagnosis
	HasDevice    bool     // one is assigned
	HasSetup     bool     // its setup is recorded
	FirstDataDay string   // first day that counts for a device; "" for none
}

// Readiness returns the readiness of patients, by id.
func (e *Engine) Readiness(app core.App, ids []string, now time.Time) (map[string]Readiness, error) {
	l := &factsLoader{Engine: e, app: app, ids: ids, facts: make(map[string]*patientFacts, len(ids))}
	for _, step := range []func() error{l.loadPatients, l.loadConsents, l.loadAssignments} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	anchors, err := e.periodAnchors(app, l.facts)
	if err != nil {
		return nil, err
	}
	today, ready := e.Day(now), make(map[string]Readiness, len(ids))
	for id, f := range l.facts {
		_, isTaught := f.setupOf(today)
		r := Readiness{Missing: e.missingItems(f, today), HasSetup: isTaught, HasDevice: f.hasDevice()}
		if days := anchors[id]; len(days) > 0 {
			r.FirstDataDay = days[len(days)-1]
		}
		ready[id] = r
	}
	return ready, nil
}
