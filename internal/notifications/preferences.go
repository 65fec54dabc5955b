package notifications

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Channel says how a person hears of what comes on a channel.
type Channel struct {
	Push  bool `json:"push"`
	InApp bool `json:"in_app"`
}

// AlertChannel can also be declined by subtype.
type AlertChannel struct {
	Channel
	Subtypes map[string]bool `json:"subtypes"`
}

// DigestChannel comes at a time of the day.
type DigestChannel struct {
	Channel
	Time string `json:"time"` // HH:MM
}

// ChannelChoices are a person's choices, channel by channel.
type ChannelChoices struct {
	Escalations Channel       `json:"escalations"`
	Alerts      AlertChannel  `json:"alerts"`
	Reminders   Channel       `json:"reminders"`
	DailyDigest DigestChannel `json:"daily_digest"`
}

// Preferences are all that a person chose about being told.
type Preferences struct {
	Channels   ChannelChoices `json:"channels"`
	QuietHours QuietHours     `json:"quiet_hours"`
	TimeZone   string         `json:"time_zone"`
}

// subtypes of alerts that can be declined; what is critical cannot.
var subtypes = map[string]bool{thresholdWarning: true, missedReading: true, deviceNotice: true, SystemHealth: true}

// Defaults are what holds for somebody who never chose. Source: docs/decisions/notifications.md, "Preferences".
func Defaults() Preferences {
	on := Channel{Push: true, InApp: true}
	return Preferences{
		Channels: ChannelChoices{
			Escalations: on, Alerts: AlertChannel{on, maps.Clone(subtypes)}, Reminders: on, DailyDigest: DigestChannel{on, "07:00"},
		},
		QuietHours: QuietHours{Start: "22:00", End: "07:00", Exceptions: []string{Escalations}},
	}
}

// channel is the choice that holds for a notification.
func (p Preferences) channel(name, kind, severity string) Channel {
	switch name {
	case Alerts:
		if severity == "critical" {
			return Channel{Push: true, InApp: true}
		}
		choice := p.Channels.Alerts.Channel
		if wanted, known := p.Channels.Alerts.Subtypes[kind]; known && !wanted {
			choice.Push = false
		}
		return choice
	case Reminders:
		return p.Channels.Reminders
	case DailyDigest:
		return p.Channels.DailyDigest.Channel
	}
	return Channel{Push: true, InApp: true} // escalations cannot be disabled
}

// location is the person's zone, or the practice's.
func (p Preferences) location(practice *time.Location) *time.Location {
	return collections.Zone(p.TimeZone, practice)
}

// stored reads what a person chose over the defaults. Damage leaves the defaults.
func stored(row collections.StoredPreferences, timeZone string) Preferences {
	p := Defaults()
	if json.Unmarshal([]byte(row.Channels), &p.Channels) != nil {
		p.Channels = Defaults().Channels
	}
	if json.Unmarshal([]byte(row.Quiet), &p.QuietHours) != nil {
		p.QuietHours = Defaults().QuietHours
	}
	p.TimeZone = timeZone
	return p
}

// PreferencesOf are the choices of a person; the zone is the practice's where the person named none.
func PreferencesOf(app core.App, user *collections.User, practice *time.Location) (Preferences, error) {
	rows, err := collections.PreferencesOf(app, []string{user.Id})
	if err != nil {
		return Preferences{}, err
	}
	p := stored(rows[user.Id], user.TimeZone())
	if p.TimeZone == "" {
		p.TimeZone = practice.String()
	}
	return p, nil
}

// save stores choices of a person.
func (p Preferences) save(tx core.App, userID string, now time.Time) error {
	channels, err := json.Marshal(p.Channels)
	if err != nil {
		return fmt.Errorf("encode channels: %w", err)
	}
	quiet, err := json.Marshal(p.QuietHours)
	if err != nil {
		return fmt.Errorf("encode quiet hours: %w", err)
	}
	return collections.SavePreferences(tx, collections.StoredPreferences{User: userID, Channels: string(channels), Quiet: string(quiet)}, now)
}

// QuietHours are when pushes are silenced: from Start, included, to End, excluded, by the clock on the person's wall.
type QuietHours struct {
	Enabled    bool     `json:"enabled"`
	Start      string   `json:"start"` // HH:MM
	End        string   `json:"end"`   // HH:MM; before Start it is that of the next day
	Exceptions []string `json:"exceptions"`
}

// Silence reports whether a push of a channel is silenced at a local time. What the wall clock shows decides, so that days with 23 or 25
// hours need no rule: an hour that is shown twice is quiet twice, and one that is left out is quiet for nobody.
// Source: docs/decisions/notifications.md, "Quiet hours".
func (q QuietHours) Silence(channel string, local time.Time) bool {
	return q.silence(channel, local.Format("15:04"))
}

func (q QuietHours) silence(channel, clock string) bool {
	if !q.Enabled || channel == Escalations || slices.Contains(q.Exceptions, channel) {
		return false
	}
	if q.Start < q.End {
		return q.Start <= clock && clock < q.End
	}
	return q.Start <= clock || clock < q.End
}
