package notifications

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Channel holds how a user receives notifications of a channel.
type Channel struct {
	Push  bool `json:"push"`
	InApp bool `json:"in_app"`
}

// AlertChannel adds choices by subtype.
type AlertChannel struct {
	Channel
	Subtypes map[string]bool `json:"subtypes"`
}

// DigestChannel adds the time of day of the digest.
type DigestChannel struct {
	Channel
	Time string `json:"time"` // HH:MM
}

// ChannelChoices are a user's choices by channel.
type ChannelChoices struct {
	Escalations Channel       `json:"escalations"`
	Alerts      AlertChannel  `json:"alerts"`
	Reminders   Channel       `json:"reminders"`
	DailyDigest DigestChannel `json:"daily_digest"`
}

// Preferences are a user's notification preferences.
type Preferences struct {
	Channels   ChannelChoices `json:"channels"`
	QuietHours QuietHours     `json:"quiet_hours"`
	TimeZone   string         `json:"time_zone"`
}

// Defaults returns the preferences of a user who chose none. Source: docs/decisions/notifications.md, "Preferences".
func Defaults() Preferences {
	on := Channel{Push: true, InApp: true}
	return Preferences{
		Channels: ChannelChoices{
			Escalations: on, Alerts: AlertChannel{on, disableable()}, Reminders: on, DailyDigest: DigestChannel{on, "07:00"},
		},
		QuietHours: QuietHours{Start: "22:00", End: "07:00", Exceptions: []string{Escalations}},
	}
}

// channel returns the choice that applies to a notification.
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

// location returns the user's time zone, or the practice's.
func (p Preferences) location(practice *time.Location) *time.Location {
	return collections.Zone(p.TimeZone, practice)
}

// decodePreferences applies a user's stored choices to the defaults. A damaged value falls back to its default.
func decodePreferences(row collections.StoredPreferences, timeZone string) Preferences {
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

// PreferencesOf returns the preferences of a user, with the practice's time zone if the user chose none.
func PreferencesOf(app core.App, user *collections.User, practice *time.Location) (Preferences, error) {
	rows, err := collections.PreferencesOf(app, []string{user.Id})
	if err != nil {
		return Preferences{}, err
	}
	p := decodePreferences(rows[user.Id], user.TimeZone())
	p.TimeZone = cmp.Or(p.TimeZone, practice.String())
	return p, nil
}

// save stores a user's preferences.
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

// QuietHours suppress pushes from Start, inclusive, to End, exclusive, in the user's local time.
type QuietHours struct {
	Enabled    bool     `json:"enabled"`
	Start      string   `json:"start"` // HH:MM
	End        string   `json:"end"`   // HH:MM; if before Start, on the next day
	Exceptions []string `json:"exceptions"`
}

// IsSilent reports whether a push of a channel is suppressed at a local time. Only the local wall-clock time counts, so days with 23 or 25 hours
// need no rule: a repeated hour is quiet twice, and a skipped one never.
// Source: docs/decisions/notifications.md, "Quiet hours".
func (q QuietHours) IsSilent(channel string, local time.Time) bool {
	return q.isSilentAt(channel, local.Format("15:04"))
}

func (q QuietHours) isSilentAt(channel, clock string) bool {
	if !q.Enabled || channel == Escalations || slices.Contains(q.Exceptions, channel) {
		return false
	}
	if q.Start < q.End {
		return q.Start <= clock && clock < q.End
	}
	return q.Start <= clock || clock < q.End
}

// PreferencesBody is a change of preferences; omitted members keep their values.
type PreferencesBody struct {
	Channels   validate.Object             `json:"channels"`
	QuietHours validate.Field[quietChange] `json:"quiet_hours"`
	TimeZone   validate.String             `json:"time_zone"`
}

type channelChange struct {
	Push     validate.Boolean                            `json:"push"`
	InApp    validate.Boolean                            `json:"in_app"`
	Time     validate.String                             `json:"time"`
	Subtypes validate.Field[map[string]validate.Boolean] `json:"subtypes"`
}

type quietChange struct {
	Enabled    validate.Boolean `json:"enabled"`
	Start      validate.String  `json:"start"`
	End        validate.String  `json:"end"`
	Exceptions validate.Strings `json:"exceptions"`
}

const (
	notAnObject = "Must be an object."
	notATime    = "Must be a time as HH:MM."
)

var clockTime = regexp.MustCompile(`^(?:[01][0-9]|2[0-3]):[0-5][0-9]$`)

// ChangePreferences merges a body into a user's preferences and returns the result, or a fault that lists all invalid fields.
// Source: docs/decisions/notifications.md, "Preferences".
func ChangePreferences(app core.App, userID string, body PreferencesBody, practice *time.Location, now time.Time) (changed Preferences, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		user, err := collections.FindUser(tx, userID)
		if err != nil {
			return err
		}
		if changed, err = PreferencesOf(tx, user, practice); err != nil {
			return err
		}
		checks := validate.NewChecks()
		body.mergeInto(&changed, checks)
		if err := checks.Err(); err != nil {
			return err
		}
		if body.TimeZone.Given() && changed.TimeZone != user.TimeZone() {
			user.SetTimeZone(changed.TimeZone)
			user.SetUpdatedAt(now)
			if err := tx.Save(user); err != nil {
				return err
			}
		}
		return changed.save(tx, userID, now)
	})
	return changed, err
}

func (b PreferencesBody) mergeInto(p *Preferences, checks *validate.Checks) {
	if isObjectPresent(checks, "channels", b.Channels) {
		for _, name := range slices.Sorted(maps.Keys(b.Channels.Value)) {
			b.mergeChannel(p, name, checks)
		}
	}
	if isObjectPresent(checks, "quiet_hours", b.QuietHours) {
		b.QuietHours.Value.mergeInto(&p.QuietHours, checks)
	}
	validate.NotNull(checks, "time_zone", b.TimeZone)
	if b.TimeZone.Sent() {
		if zone := checks.TimeZone("time_zone", b.TimeZone); zone != "" {
			p.TimeZone = zone
		}
	}
}

// isObjectPresent reports whether an object was sent; it rejects any other value, null included.
func isObjectPresent[T any](checks *validate.Checks, name string, f validate.Field[T]) bool {
	if f.Sent() && !f.Given() {
		checks.Reject(name, notAnObject)
	}
	return f.Given()
}

func (b PreferencesBody) mergeChannel(p *Preferences, name string, checks *validate.Checks) {
	field := "channels." + name
	choices := map[string]*Channel{
		Escalations: &p.Channels.Escalations, Alerts: &p.Channels.Alerts.Channel, Reminders: &p.Channels.Reminders,
		DailyDigest: &p.Channels.DailyDigest.Channel,
	}
	choice, known := choices[name]
	if !known {
		checks.Reject(field, "No such channel.")
		return
	}
	var change *channelChange
	if validate.DecodeMember(b.Channels.Value[name], &change) != nil || change == nil {
		checks.Reject(field, notAnObject)
		return
	}
	mergeFlag(checks, field+".push", change.Push, &choice.Push)
	mergeFlag(checks, field+".in_app", change.InApp, &choice.InApp)
	switch name {
	case Escalations:
		if !choice.Push || !choice.InApp {
			checks.Reject(field, "Escalations cannot be disabled.")
		}
	case DailyDigest:
		mergeTime(checks, field+".time", change.Time, &p.Channels.DailyDigest.Time)
	case Alerts:
		change.mergeSubtypes(p, checks)
	}
}

func (c channelChange) mergeSubtypes(p *Preferences, checks *validate.Checks) {
	const field = "channels.alerts.subtypes"
	if !isObjectPresent(checks, field, c.Subtypes) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Subtypes.Value)) {
		if !types[name].canBeDisabled {
			checks.Reject(field+"."+name, "No such subtype.")
			continue
		}
		wanted := p.Channels.Alerts.Subtypes[name]
		mergeFlag(checks, field+"."+name, c.Subtypes.Value[name], &wanted)
		p.Channels.Alerts.Subtypes[name] = wanted
	}
}

func (c quietChange) mergeInto(q *QuietHours, checks *validate.Checks) {
	mergeFlag(checks, "quiet_hours.enabled", c.Enabled, &q.Enabled)
	mergeTime(checks, "quiet_hours.start", c.Start, &q.Start)
	mergeTime(checks, "quiet_hours.end", c.End, &q.End)
	if q.Start == q.End {
		checks.Reject("quiet_hours.end", "Must differ from start.")
	}
	if !c.Exceptions.Sent() {
		return
	}
	if !c.Exceptions.Given() {
		checks.Reject("quiet_hours.exceptions", "Must be a list of channels.")
		return
	}
	exceptions := []string{}
	for _, name := range Channels { // each once, in the order of the contract; escalations are always excepted
		if name == Escalations || slices.Contains(c.Exceptions.Value, name) {
			exceptions = append(exceptions, name)
		}
	}
	for _, name := range c.Exceptions.Value {
		if !slices.Contains(Channels, name) {
			checks.Reject("quiet_hours.exceptions", "No such channel.")
			return
		}
	}
	q.Exceptions = exceptions
}

func mergeFlag(checks *validate.Checks, name string, f validate.Boolean, into *bool) {
	if f.Null() {
		checks.Reject(name, "Must be true or false.")
	} else if value := checks.Boolean(name, f, false); value != nil {
		*into = *value
	}
}

func mergeTime(checks *validate.Checks, name string, f validate.String, into *string) {
	if !f.Sent() {
		return
	}
	if !f.Given() || !clockTime.MatchString(f.Value) {
		checks.Reject(name, notATime)
		return
	}
	*into = f.Value
}
