package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The values of a hub's status.
const (
	HubOnline  = "online"
	HubOffline = "offline"
)

// Hub is a row of the hubs, with when it was last heard of: itself, or a device that reported through it.
type Hub struct {
	HubID           string `db:"hub_id"`
	Status          string `db:"status"`
	LastHeartbeatAt string `db:"last_heartbeat_at"`
	StateAt         string `db:"state_at"`
	LastHeardAt     string `db:"heard_at"`
}

func (h Hub) Heard() time.Time      { return ParseInstant(h.LastHeardAt) } // when the hub was last heard of
func (h Hub) StateSince() time.Time { return ParseInstant(h.StateAt) }     // the time of the event that set the status

const selectHubs = `SELECT * FROM (SELECT h.hub_id, h.status, h.last_heartbeat_at, h.state_at, MAX(h.last_event_at,
		COALESCE((SELECT MAX(d.last_seen_at) FROM devices d WHERE d.hub_id = h.hub_id AND d.hub_id != ''), '')) AS heard_at FROM hubs h) `

// FindHub finds a hub; ok is false when there is none.
func FindHub(app core.App, hubID string) (hub Hub, ok bool, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE hub_id = {:hub}`).Bind(dbx.Params{"hub": hubID}).One(&hub)
	if Missing(err) {
		return hub, false, nil
	}
	return hub, err == nil, wrap(err, "find hub")
}

// SilentHubs are the hubs thought online that sent a heartbeat after watchedSince and nothing since heardBefore.
func SilentHubs(app core.App, watchedSince, heardBefore time.Time) (hubs []Hub, err error) {
	err = app.DB().NewQuery(selectHubs + `WHERE status = 'online' AND last_heartbeat_at > {:watched} AND heard_at < {:heard} ORDER BY hub_id`).
		Bind(dbx.Params{"watched": Instant(watchedSince), "heard": Instant(heardBefore)}).All(&hubs)
	return hubs, wrap(err, "find silent hubs")
}

// PageOfHubs returns a page of hubs by identifier, and how many there are in all.
func PageOfHubs(app core.App, offset, limit int) (page []Hub, total int, err error) {
	if err := app.DB().Select("COUNT(*)").From(Hubs).Row(&total); err != nil {
		return nil, 0, fmt.Errorf("count hubs: %w", err)
	}
	err = app.DB().NewQuery(selectHubs + `ORDER BY hub_id LIMIT +{:limit} OFFSET +{:offset}`).
		Bind(dbx.Params{"limit": limit, "offset": offset}).All(&page)
	return page, total, wrap(err, "list hubs")
}

// StoreHub writes a hub; the times of a stored one only ever move forward.
func StoreHub(tx core.App, hub Hub, now time.Time) error {
	return exec(tx, "store hub", `INSERT INTO hubs (hub_id, status, last_heartbeat_at, last_event_at, state_at, created_at)
			VALUES ({:hub}, {:status}, {:beat}, {:heard}, {:state}, {:now})
		ON CONFLICT (hub_id) DO UPDATE SET status = {:status}, state_at = {:state},
			last_heartbeat_at = MAX(last_heartbeat_at, {:beat}), last_event_at = MAX(last_event_at, {:heard})`, dbx.Params{
		"hub": hub.HubID, "status": hub.Status, "beat": hub.LastHeartbeatAt, "heard": hub.LastHeardAt, "state": hub.StateAt, "now": Instant(now),
	})
}
