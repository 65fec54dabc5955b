package observations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Rehearsal says what storing readings would come to, one after the other, and stores nothing.
type Rehearsal struct {
	engine *Engine
	seen   map[string]string // values by gateway key
}

// NewRehearsal begins with what is stored.
func NewRehearsal(e *Engine) *Rehearsal { return &Rehearsal{engine: e, seen: map[string]string{}} }

// Ingest says what [Engine.Ingest] would, and remembers the reading as if it had been stored.
func (r *Rehearsal) Ingest(app core.App, s Submission, now time.Time) (Outcome, error) {
	if _, err := r.engine.findSubject(app, nil, s); err != nil {
		return Outcome{}, err
	}
	o := r.engine.observe(s, now)
	values := readingKey("", s.Reading)
	if earlier, met := r.seen[s.GatewayKey]; met {
		return Outcome{Observation: o, Duplicate: earlier == values, Conflict: earlier != values}, nil
	}
	outcome, keyless, err := repeated(app, o)
	missing := collections.Missing(err)
	if missing || keyless {
		r.seen[s.GatewayKey] = values
	}
	if missing {
		return Outcome{Observation: o}, nil
	}
	return outcome, err
}
