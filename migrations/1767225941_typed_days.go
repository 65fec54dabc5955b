package migrations

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// A reading that somebody typed makes no day of transmission any more, whatever device they named. Those that were counted are taken out of
// their days; the nightly recount looks at every day anyway.
func init() {
	step("1767225941_typed_days.go", func(app core.App) error {
		var typed []struct {
			Patient  string `db:"patient"`
			Kind     string `db:"observation_type"`
			Measured string `db:"measured_at"`
			Zone     string `db:"time_zone"`
		}
		err := app.DB().NewQuery(`SELECT o.patient, o.observation_type, o.measured_at, p.time_zone FROM observations o JOIN patients p ON p.id = o.patient
			WHERE o.status = 'final' AND o.device_id != '' AND (o.origin = 'staff' OR o.origin = '' AND o.source = 'api')
				AND o.patient IS (SELECT a.patient FROM device_assignments a WHERE a.device_id = o.device_id AND a.assigned_at <= o.measured_at
					AND (a.unassigned_at = '' OR a.unassigned_at > o.measured_at) ORDER BY a.assigned_at DESC LIMIT 1)`).All(&typed)
		if err != nil {
			return fmt.Errorf("find typed readings: %w", err)
		}
		for _, r := range typed {
			at, err := time.Parse(time.RFC3339Nano, r.Measured)
			if err != nil {
				return fmt.Errorf("read when it was measured: %w", err)
			}
			zone, err := time.LoadLocation(cmp.Or(r.Zone, os.Getenv("VIGIL_PRACTICE_TIME_ZONE"), "America/New_York"))
			if err != nil {
				return fmt.Errorf("read a time zone: %w", err)
			}
			_, err = app.DB().NewQuery(`UPDATE reading_days SET device_readings = MAX(device_readings - 1, 0)
				WHERE patient = {:patient} AND day = {:day} AND observation_type = {:kind}`).
				Bind(dbx.Params{"patient": r.Patient, "day": at.In(zone).Format(time.DateOnly), "kind": r.Kind}).Execute()
			if err != nil {
				return fmt.Errorf("count a day anew: %w", err)
			}
		}
		return nil
	})
}
