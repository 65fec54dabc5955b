package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Readiness is what stands against billing for a patient today, and how far the device has come.
type Readiness struct {
	Missing      []string // NotActive, MissingConsent, MissingDiagnosis
	HasDevice    bool     // one is assigned
	HasSetup     bool     // its set-up is recorded
	FirstDataDay string   // the first day that counts for a device; "" while there is none
}

// Readiness says how ready for billing some patients are, by id.
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
		r := Readiness{
			Missing: e.missingItems(f, today), HasSetup: f.setupDay != "",
			HasDevice: slices.ContainsFunc(f.assignments, func(h DeviceAssignment) bool { return h.Until == "" }),
		}
		if days := anchors[id]; len(days) > 0 {
			r.FirstDataDay = days[len(days)-1]
		}
		ready[id] = r
	}
	return ready, nil
}
