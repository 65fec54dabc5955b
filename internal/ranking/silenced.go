package ranking

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
)

// silenced is the alert about a clock that is ahead which shows critical values of a kind that nobody has decided about, and that are told
// nowhere else, since a snooze silences them. Nil for none. A change of weight is left out: whose it is, is asked there.
// Source: docs/decisions/devices.md, "A clock that is ahead".
func silenced(tx core.App, picture triage.Picture, kind string) (*collections.Alert, error) {
	waiting, err := collections.UndecidedClockAlerts(tx, picture.PatientID, alerts.TypeDeviceClock, alerts.TypeImplausibleReading)
	if err != nil {
		return nil, err
	}
	for _, alert := range waiting {
		reported, err := alerts.ReadReported(alert.ReportedValues().Reveal())
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(reported, func(v alerts.Reported) bool { return v.Of.Group == kind && picture.Thresholds.Alarms(v.Of, v.Value) }) {
			return alert, nil
		}
	}
	return nil, nil
}

func severityOf(critical bool) string {
	if critical {
		return string(alerts.Critical)
	}
	return string(alerts.Warning)
}
