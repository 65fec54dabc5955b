package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of a patient's latest hold, and of a death.
const (
	PatientHoldReason  = "hold_reason"
	PatientHoldFrom    = "hold_from"
	PatientHoldUntil   = "hold_until"
	PatientHoldEndedAt = "hold_ended_at"
	PatientHoldBy      = "hold_by"
	PatientHoldNotes   = "hold_notes"
	PatientDeceasedAt  = "deceased_at"
	PatientEffectiveAt = "effective_at"
	// PatientInterruptions are the times in which the patient was archived, before the latest archiving.
	PatientInterruptions = "interruptions"
)

// PatientHold is the latest hold of a patient: a time without expected readings. It is zero for none.
type PatientHold struct {
	Reason      string
	From, Until time.Time
	EndedAt     time.Time // zero until the end is recorded
	By          string
	Notes       phi.Text
}

// End returns when the hold ended or will end.
func (h PatientHold) End() time.Time {
	if !h.EndedAt.IsZero() {
		return h.EndedAt
	}
	return h.Until
}

// InForce reports whether the hold is in force at a time.
func (h PatientHold) InForce(at time.Time) bool { return !h.From.IsZero() && at.Before(h.End()) }

// Days returns the first and the last day in the zone that the hold touches, YYYY-MM-DD; "" for no hold.
func (h PatientHold) Days(zone *time.Location) (first, last string) {
	if h.From.IsZero() {
		return "", ""
	}
	return h.From.In(zone).Format(time.DateOnly), h.End().Add(-time.Microsecond).In(zone).Format(time.DateOnly)
}

// Hold returns the latest hold.
func (p *Patient) Hold() PatientHold {
	return PatientHold{
		Reason: p.GetString(PatientHoldReason), From: instantOf(p, PatientHoldFrom), Until: instantOf(p, PatientHoldUntil),
		EndedAt: instantOf(p, PatientHoldEndedAt), By: p.GetString(PatientHoldBy), Notes: phi.Text(p.GetString(PatientHoldNotes)),
	}
}

// DeceasedAt returns the date of death, YYYY-MM-DD; "" for none.
func (p *Patient) DeceasedAt() string { return p.GetString(PatientDeceasedAt) }

// EffectiveAt returns when monitoring ended, if that was before the archiving; zero otherwise.
func (p *Patient) EffectiveAt() time.Time { return instantOf(p, PatientEffectiveAt) }

// Interruption is a time in which a patient was archived.
type Interruption struct {
	From  string `json:"from"`
	Until string `json:"until"`
}

// Interruptions are stored as JSON.
type Interruptions []Interruption

// Scan implements sql.Scanner. Damaged JSON gives none.
func (l *Interruptions) Scan(stored any) error { scanJSON(stored, l); return nil }

// Interruptions returns the earlier interruptions of monitoring; none for damaged JSON.
func (p *Patient) Interruptions() (list Interruptions) {
	if p.UnmarshalJSONField(PatientInterruptions, &list) != nil {
		return nil
	}
	return list
}

// holdRow is a hold in a query; its columns are [holdColumns].
type holdRow struct {
	Reason  string `db:"hold_reason"`
	From    string `db:"hold_from"`
	Until   string `db:"hold_until"`
	EndedAt string `db:"hold_ended_at"`
	By      string `db:"hold_by"`
}

const holdColumns = "hold_reason, hold_from, hold_until, hold_ended_at, hold_by"

func (r holdRow) hold() PatientHold {
	return PatientHold{Reason: r.Reason, From: ParseInstant(r.From), Until: ParseInstant(r.Until), EndedAt: ParseInstant(r.EndedAt), By: r.By}
}

// HoldsInForce returns the holds in force of the given patients, without notes.
func HoldsInForce(app core.App, patientIDs []string, at time.Time) (map[string]PatientHold, error) {
	type row struct {
		ID string `db:"id"`
		holdRow
	}
	params := idParams(patientIDs)
	params["at"] = FormatInstant(at)
	rows, err := queryAll[row](app, "read holds of patients", `SELECT id, `+holdColumns+` FROM patients
		WHERE id`+inIDs+` AND hold_until > {:at} AND hold_ended_at = ''`, params)
	holds := make(map[string]PatientHold, len(rows))
	for _, r := range rows {
		holds[r.ID] = r.hold()
	}
	return holds, err
}

// DuePatientHolds returns the patients with a hold that is over and not yet recorded as ended, the longest overdue first.
func DuePatientHolds(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find patient holds that are over", `SELECT id FROM patients
		WHERE hold_until != '' AND hold_ended_at = '' AND hold_until <= {:now} AND deleted_at = '' ORDER BY hold_until LIMIT +{:limit}`,
		dbx.Params{"now": FormatInstant(now), "limit": limit})
}

// OpenAlertsOfTypes returns a patient's open alerts of some types, or of all for nil.
func OpenAlertsOfTypes(tx core.App, patientID string, types []string) ([]*Alert, error) {
	where := Conditions{dbx.HashExp{"patient": patientID}, AnyOf("status", []string{"active", "acknowledged"})}
	if types != nil {
		where = append(where, AnyOf("type", types))
	}
	return listOf[Alert](tx, Alerts, AllOf(where), "measured_at", "id")
}

// OpenEscalationsOf returns the numbers of a patient's escalations that are open or in progress.
func OpenEscalationsOf(tx core.App, patientID string) ([]int64, error) {
	return queryColumn[int64](tx, "find open escalations", `SELECT CAST(id AS INTEGER) FROM escalations
		WHERE patient = {:patient} AND status IN ('open', 'in_progress') ORDER BY id`, dbx.Params{"patient": patientID})
}

// HasOpenStat reports whether a stat escalation of a patient is open or in progress.
func HasOpenStat(tx core.App, patientID string) (bool, error) {
	return queryValue[bool](tx, "look for a stat escalation", `SELECT EXISTS (SELECT 1 FROM escalations
		WHERE patient = {:patient} AND priority = 'stat' AND status IN ('open', 'in_progress'))`, dbx.Params{"patient": patientID})
}

// UntakenEscalationsAbout returns the numbers of a patient's escalations that the system opened, no one took, and that are about alerts of
// some types only.
func UntakenEscalationsAbout(tx core.App, patientID string, types []string) ([]int64, error) {
	return queryColumn[int64](tx, "find escalations about missing readings", `SELECT CAST(e.id AS INTEGER) FROM escalations e
		WHERE e.patient = {:patient} AND e.status = 'open' AND e.created_by = 'system'
			AND EXISTS (SELECT 1 FROM alerts a WHERE a.patient = e.patient AND (a.id = e.alert OR a.escalation = e.id))
			AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.patient = e.patient AND (a.id = e.alert OR a.escalation = e.id)
				AND a.type NOT IN (SELECT value FROM json_each({:types}))) ORDER BY e.id`,
		dbx.Params{"patient": patientID, "types": jsonList(types)})
}

// FirstMonitored returns the earliest time of a patient's consents, device assignments and time entries; zero for none.
func FirstMonitored(app core.App, patientID string) (time.Time, error) {
	found, err := queryColumn[string](app, "look for the beginning of monitoring", `SELECT COALESCE(MIN(first), '') FROM (
			SELECT MIN(granted_at) AS first FROM consents WHERE patient = {:patient} AND type = 'rpm'
			UNION ALL SELECT MIN(assigned_at) FROM device_assignments WHERE patient = {:patient}
			UNION ALL SELECT MIN(started_at) FROM time_entries WHERE patient = {:patient})`, dbx.Params{"patient": patientID})
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	return ParseInstant(found[0]), nil
}
