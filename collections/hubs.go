package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Values of a hub's status.
const (
	HubOnline  = "online"
	HubOffline = "offline"
)

// Hub is a row of the hubs, with the time of its last event or of the last event of a device that reports through it.
type Hub struct {
	HubID           string `db:"hub_id"`
	Status          string `db:"status"`
	LastHeartbeatAt string `db:"last_heartbeat_at"`
	StateAt         string `db:"state_at"`
	LastSeenAt      string `db:"seen_at"`
}

func (h Hub) LastSeen() time.Time   { return ParseInstant(h.LastSeenAt) } // time of the last event
func (h Hub) StateSince() time.Time { return ParseInstant(h.StateAt) }    // time of the event that set the status

const selectHubs = `SELECT * FROM (SELECT h.hub_id, h.status, h.last_heartbeat_at, h.state_at, MAX(h.last_event_at,
		COALESCE((SELECT MAX(d.last_seen_at) FROM devices d WHERE d.hub_id = h.hub_id AND d.hub_id != ''), '')) AS seen_at FROM hubs h) `

// FindHub finds a hub; ok is false if there is none.
func FindHub(app core.App, hubID string) (hub Hub, ok bool, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE hub_id = {:hub}`).Bind(dbx.Params{"hub": hubID}).One(&hub)
	if IsNotFound(err) {
		return hub, false, nil
	}
	return hub, err == nil, wrap(err, "find hub")
}

// SilentHubs returns online hubs with a heartbeat after watchedSince and no event since seenBefore.
func SilentHubs(app core.App, watchedSince, seenBefore time.Time) (hubs []Hub, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE status = 'online' AND last_heartbeat_at > {:watched} AND seen_at < {:seen} ORDER BY hub_id`).
		Bind(dbx.Params{"watched": FormatInstant(watchedSince), "seen": FormatInstant(seenBefore)}).All(&hubs)
	return hubs, wrap(err, "find silent hubs")
}

// PageOfHubs returns a page of hubs by identifier, and the total.
func PageOfHubs(app core.App, offset, limit int) (page []Hub, total int, err error) {
	if total, err = (Conditions{}).Count(app, Hubs); err != nil {
		return nil, 0, err
	}
	err = app.DB().NewQuery(selectHubs + `ORDER BY hub_id LIMIT +{:limit} OFFSET +{:offset}`).
		Bind(dbx.Params{"limit": limit, "offset": offset}).All(&page)
	return page, total, wrap(err, "list hubs")
}

// StoreHub writes a hub. Times of a stored hub only move forward.
func StoreHub(tx core.App, hub Hub, now time.Time) error {
	return exec(tx, "store hub", `INSERT INTO hubs (hub_id, status, last_heartbeat_at, last_event_at, state_at, created_at)
			VALUES ({:hub}, {:status}, {:beat}, {:heard}, {:state}, {:now})
		ON CONFLICT (hub_id) DO UPDATE SET status = {:status}, state_at = {:state},
			last_heartbeat_at = MAX(last_heartbeat_at, {:beat}), last_event_at = MAX(last_event_at, {:heard})`, dbx.Params{
		"hub": hub.HubID, "status": hub.Status, "beat": hub.LastHeartbeatAt, "heard": hub.LastSeenAt, "state": hub.StateAt, "now": FormatInstant(now),
	})
}
