package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Readiness is what stands against billing for a patient today, and how far the device has come.
type Readiness struct {
	Against []string // NotActive, MissingConsent, MissingDiagnosis
	Device  bool     // one is assigned
	Taught  bool     // its set-up is recorded
	Began   string   // the first day that counts for a device; "" while there is none
}

// Readiness says how ready for billing some patients are, by id.
func (e *Engine) Readiness(app core.App, ids []string, now time.Time) (map[string]Readiness, error) {
	l := &loader{Engine: e, app: app, ids: ids, found: make(map[string]*facts, len(ids))}
	for _, step := range []func() error{l.patients, l.consents, l.holdings} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	anchors, err := e.anchors(app, l.found)
	if err != nil {
		return nil, err
	}
	today, ready := e.Day(now), make(map[string]Readiness, len(ids))
	for id, f := range l.found {
		r := Readiness{
			Against: e.missing(f, today), Taught: f.educated != "",
			Device: slices.ContainsFunc(f.holdings, func(h Holding) bool { return h.Until == "" }),
		}
		if days := anchors[id]; len(days) > 0 {
			r.Began = days[len(days)-1]
		}
		ready[id] = r
	}
	return ready, nil
}
