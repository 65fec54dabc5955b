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

// RecordHub marks the hub of an event without an observation as alive: every authenticated event except hub.offline shows that. An event
// without a time, or with one in the future, counts at its receipt.
func RecordHub(tx core.App, event gateway.Event, now time.Time) error {
	if event.Type == gateway.HubOffline {
		return nil
	}
	at := event.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	return recordHubAlive(tx, event.HubID, at, false, now)
}

// Source: docs/decisions/gateway.md, "Hub heartbeat".
const (
	hubSilenceLimit = 15 * time.Minute   // without any event
	hubWatchPeriod  = 7 * 24 * time.Hour // after the last hub.heartbeat
)

// recordHubAlive records that an authenticated event named the hub. If the hub was offline, its alerts are resolved.
func recordHubAlive(tx core.App, hubID string, at time.Time, heartbeat bool, now time.Time) error {
	if hubID == "" || at.IsZero() {
		return nil
	}
	hub, exists, err := collections.FindHub(tx, hubID)
	if err != nil {
		return err
	}
	back := exists && hub.Status == collections.HubOffline && at.After(hub.StateSince())
	if !exists || back {
		hub.HubID, hub.Status, hub.StateAt = hubID, collections.HubOnline, collections.FormatInstant(at)
	}
	hub.LastSeenAt = collections.FormatInstant(at)
	if heartbeat {
		hub.LastHeartbeatAt = collections.FormatInstant(at)
	}
	if err := collections.StoreHub(tx, hub, now); err != nil || !back {
		return err
	}
	if err := auditHub(tx, audit.HubOnline, hubID, now); err != nil {
		return err
	}
	return resolveAlerts(tx, hubID, alerts.TypeHubOffline, "", "Hub "+hubID+" is back.", now)
}

// handleHubOffline handles a hub.offline event. One older than the hub's state or last event changes nothing.
func handleHubOffline(tx core.App, event gateway.Event, now time.Time) error {
	hub, exists, err := collections.FindHub(tx, event.HubID)
	if err != nil {
		return err
	}
	if exists && (event.At.Before(hub.StateSince()) || event.At.Before(hub.LastSeen())) {
		return nil
	}
	was := hub.Status
	hub.HubID = event.HubID
	if !exists || event.LastSeenAt.After(hub.LastSeen()) {
		hub.LastSeenAt = collections.FormatInstant(event.LastSeenAt)
	}
	return setHubOffline(tx, hub, was, event.At, now)
}

// setHubOffline stores the hub as offline since at, and raises an alert for each patient with a device on it, once.
func setHubOffline(tx core.App, hub collections.Hub, was string, at, now time.Time) error {
	hub.Status, hub.StateAt = collections.HubOffline, collections.FormatInstant(at)
	if err := collections.StoreHub(tx, hub, now); err != nil || was == collections.HubOffline {
		return err
	}
	if err := auditHub(tx, audit.HubOffline, hub.HubID, now); err != nil {
		return err
	}
	patients, err := collections.PatientsOnHub(tx, hub.HubID, now)
	if err != nil {
		return err
	}
	for _, patient := range patients {
		draft := alerts.Draft{
			PatientID: patient, DeviceID: hub.HubID, MeasuredAt: at, OmitsValue: true,
			Finding: alerts.Finding{Type: alerts.TypeHubOffline, Level: alerts.Warning, Message: "Hub " + hub.HubID + " is offline."},
		}
		if _, err := raise(tx, deviceAlert{draft: draft, kind: notifications.DeviceAlertRaised}, now); err != nil {
			return err
		}
	}
	return nil
}

func auditHub(tx core.App, event audit.Event, hubID string, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: audit.System(), ResourceType: audit.ResourceHub, ResourceID: hubID}, now)
}

// CheckHubs sets silent hubs offline. listeningSince is the start of this service, which receives nothing before. A hub counts as offline
// from the end of the permitted silence, so a late event from after that time brings it back.
func CheckHubs(app core.App, listeningSince, now time.Time) (silent int, err error) {
	if now.Sub(listeningSince) < hubSilenceLimit {
		return 0, nil
	}
	hubs, err := collections.SilentHubs(app, now.Add(-hubWatchPeriod), now.Add(-hubSilenceLimit))
	if err != nil {
		return 0, err
	}
	for _, found := range hubs {
		err := app.RunInTransaction(func(tx core.App) error {
			hub, exists, err := collections.FindHub(tx, found.HubID)
			if err != nil || !exists || hub.Status == collections.HubOffline || !hub.LastSeen().Before(now.Add(-hubSilenceLimit)) {
				return err // an event arrived in between
			}
			silent++
			return setHubOffline(tx, hub, hub.Status, hub.LastSeen().Add(hubSilenceLimit), now)
		})
		if err != nil {
			return silent, err
		}
	}
	return silent, nil
}

// DevicesByHub returns the devices on the given hubs, by hub.
func DevicesByHub(app core.App, hubs []collections.Hub, careTeamOf string) (map[string][]*collections.Device, error) {
	on := map[string][]*collections.Device{}
	if len(hubs) == 0 {
		return on, nil
	}
	ids := make([]string, len(hubs))
	for i, hub := range hubs {
		ids[i] = hub.HubID
	}
	found, err := collections.DevicesOnHubs(app, ids, careTeamOf)
	for _, device := range found {
		on[device.HubID()] = append(on[device.HubID()], device)
	}
	return on, err
}
