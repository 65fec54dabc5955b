package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// teamChange is the entry of a patient's trail that may say that the primary provider is another.
type teamChange struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Changes string `db:"changes"`
}

// EmptiedTeams are the patients whose care team has nobody any more, and had somebody at a time or since. The primary provider is a column of the patient:
// that it was this one which changed, the trail says, where an entry may be dated so long before its commit. Of what cannot be opened it is assumed.
func EmptiedTeams(app core.App, since time.Time, longest time.Duration) (patients []string, err error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, err
	}
	params := dbx.Params{"place": place, "exact": exact, "since": Instant(since), "from": Instant(since.Add(-longest))}
	const changed = `SELECT DISTINCT c.record FROM changes c JOIN patients p ON p.id = c.record AND p.primary_provider = ''
			AND NOT EXISTS (SELECT 1 FROM care_team_members m WHERE m.patient = p.id)
		WHERE c.seq > {:place} AND ({:exact} OR c.at >= {:since}) AND c.change = 'updated' AND c.type = `
	if patients, err = queryColumn[string](app, "find teams without members", changed+`'care_team'`, params); err != nil {
		return nil, err
	}
	entries, err := queryAll[teamChange](app, "find teams without a provider", `SELECT a.id, a.patient, a.changes FROM (`+changed+`'patient') t
		CROSS JOIN audit_log a ON a.patient = t.record
		WHERE +a.event IN ('care_team.update', 'patient.update') AND +a.recorded_at >= {:from} AND a.changes != ''`, params)
	for _, e := range entries {
		if e.namesProvider() {
			patients = append(patients, e.Patient)
		}
	}
	return patients, err
}

func (c teamChange) namesProvider() bool {
	text, err := Open(c.Changes, AuditLog+".changes", c.ID)
	if err != nil {
		return true
	}
	var names map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &names) != nil {
		return true
	}
	_, named := names["primary_provider_id"]
	return named
}
