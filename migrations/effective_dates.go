package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950430_effective_dates.go", addEffectiveDates) }

// addEffectiveDates adds when a revoked consent ended, and the earlier interruptions of a patient's
// monitoring, because archiving again overwrites the columns of the last one. Interruptions before
// this migration are only in the audit trail.
func addEffectiveDates(app core.App) error {
	err := changeCollection(app, "consents", []string{
		`{"name": "effective_at", "type": "text", "id": "text1795950431", "help": "When the consent ended, if before its revocation was recorded. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"}`,
	})
	if err != nil {
		return err
	}
	err = changeCollection(app, "patients", []string{
		`{"name": "interruptions", "type": "json", "id": "json1795950432", "help": "from, until: earlier times in which the patient was archived.", "maxSize": 65536}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE patients SET interruptions = (SELECT json_group_array(json_object('from', started, 'until', ended)) FROM (
			SELECT a.recorded_at AS started, (SELECT MIN(u.recorded_at) FROM audit_log u WHERE u.patient = patients.id AND u.event = 'patient.unarchive'
				AND u.recorded_at >= a.recorded_at) AS ended
			FROM audit_log a WHERE a.patient = patients.id AND a.event = 'patient.archive' AND a.recorded_at < patients.archived_at ORDER BY a.recorded_at)
			WHERE ended < patients.archived_at)
		WHERE unarchived_at != '' AND EXISTS (SELECT 1 FROM audit_log e WHERE e.patient = patients.id AND e.event = 'patient.archive'
			AND e.recorded_at < patients.archived_at)`)
}
