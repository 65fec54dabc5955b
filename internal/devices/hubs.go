package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Source: docs/decisions/gateway.md, "Hub heartbeat".
const (
	hubSilence   = 15 * time.Minute   // without any word
	hubWatchedOn = 7 * 24 * time.Hour // after the last hub.heartbeat
)

// recordHubAlive notes that a signed event named the hub: it was alive then. One that was offline before is back, and its alerts are
// over.
func recordHubAlive(tx core.App, hubID string, at time.Time, heartbeat bool, now time.Time) error {
	if hubID == "" || at.IsZero() {
		return nil
	}
	hub, known, err := collections.FindHub(tx, hubID)
	if err != nil {
		return err
	}
	back := known && hub.Status == collections.HubOffline && at.After(hub.StateSince())
	if !known || back {
		hub.HubID, hub.Status, hub.StateAt = hubID, collections.HubOnline, collections.Instant(at)
	}
	hub.LastHeardAt = collections.Instant(at)
	if heartbeat {
		hub.LastHeartbeatAt = collections.Instant(at)
	}
	if err := collections.StoreHub(tx, hub, now); err != nil || !back {
		return err
	}
	if err := noteHub(tx, audit.HubOnline, hubID, now); err != nil {
		return err
	}
	return resolveAlerts(tx, hubID, alerts.TypeHubOffline, "", "Hub "+hubID+" is back.", now)
}

// goOffline takes a hub.offline event. One that is older than the hub's state, or than its last word, changes nothing.
func goOffline(tx core.App, event gateway.Event, now time.Time) error {
	hub, known, err := collections.FindHub(tx, event.HubID)
	if err != nil {
		return err
	}
	if known && (event.At.Before(hub.StateSince()) || event.At.Before(hub.Heard())) {
		return nil
	}
	was := hub.Status
	hub.HubID = event.HubID
	if !known || event.LastSeenAt.After(hub.Heard()) {
		hub.LastHeardAt = collections.Instant(event.LastSeenAt)
	}
	return turnOff(tx, hub, was, event.At, now)
}

// turnOff stores the hub as offline since at, and alerts for each patient with a device on it unless that was done when it
// went offline.
func turnOff(tx core.App, hub collections.Hub, was string, at, now time.Time) error {
	hub.Status, hub.StateAt = collections.HubOffline, collections.Instant(at)
	if err := collections.StoreHub(tx, hub, now); err != nil || was == collections.HubOffline {
		return err
	}
	if err := noteHub(tx, audit.HubOffline, hub.HubID, now); err != nil {
		return err
	}
	patients, err := collections.PatientsOnHub(tx, hub.HubID)
	if err != nil {
		return err
	}
	for _, patient := range patients {
		draft := alerts.Draft{
			PatientID: patient, DeviceID: hub.HubID, MeasuredAt: at, Unmeasured: true,
			Finding: alerts.Finding{Type: alerts.TypeHubOffline, Level: alerts.Warning, Message: "Hub " + hub.HubID + " is offline."},
		}
		if _, err := raise(tx, alarm{draft: draft, kind: notifications.DeviceAlertRaised}, now); err != nil {
			return err
		}
	}
	return nil
}

func noteHub(tx core.App, event audit.Event, hubID string, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: audit.System(), ResourceType: audit.ResourceHub, ResourceID: hubID}, now)
}

// CheckHubs turns the hubs off that have fallen silent. listeningSince is when this service began to listen: before that,
// silence was its own. A hub counts as offline from the end of the time it had, so that an event that comes late from
// after that moment brings it back.
func CheckHubs(app core.App, listeningSince, now time.Time) (silent int, err error) {
	if now.Sub(listeningSince) < hubSilence {
		return 0, nil
	}
	hubs, err := collections.SilentHubs(app, now.Add(-hubWatchedOn), now.Add(-hubSilence))
	if err != nil {
		return 0, err
	}
	for _, found := range hubs {
		err := app.RunInTransaction(func(tx core.App) error {
			hub, known, err := collections.FindHub(tx, found.HubID)
			if err != nil || !known || hub.Status == collections.HubOffline || !hub.Heard().Before(now.Add(-hubSilence)) {
				return err // it spoke in between
			}
			silent++
			return turnOff(tx, hub, hub.Status, hub.Heard().Add(hubSilence), now)
		})
		if err != nil {
			return silent, err
		}
	}
	return silent, nil
}
