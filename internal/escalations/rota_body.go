package escalations

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// maxTurns limits the shifts and the overrides.
const maxTurns = 200

// RotaBody is the body that replaces the rota. An omitted list is empty.
type RotaBody struct {
	TimeZone  validate.String                                `json:"time_zone"`
	Shifts    validate.Field[[]validate.Field[ShiftBody]]    `json:"shifts"`
	Overrides validate.Field[[]validate.Field[OverrideBody]] `json:"overrides"`
}

// ShiftBody is one shift of a [RotaBody].
type ShiftBody struct {
	Weekday validate.Integer `json:"weekday"`
	Start   validate.String  `json:"start"`
	End     validate.String  `json:"end"`
	UserID  validate.Integer `json:"user_id"`
}

// OverrideBody is one override of a [RotaBody].
type OverrideBody struct {
	StartsAt validate.String  `json:"starts_at"`
	EndsAt   validate.String  `json:"ends_at"`
	UserID   validate.Integer `json:"user_id"`
}

// RotaDraft is a rota validated except for its users.
type RotaDraft struct {
	TimeZone  string
	Shifts    []Shift
	Overrides []Override
}

// Read checks the body as far as possible without stored data.
func (b RotaBody) Read(c *validate.Checks) RotaDraft {
	d := RotaDraft{TimeZone: c.Text("time_zone", b.TimeZone, validate.Required(64)), Shifts: []Shift{}, Overrides: []Override{}}
	if d.TimeZone != "" {
		c.TimeZone("time_zone", b.TimeZone)
	}
	eachItem(c, "shifts", b.Shifts, func(name string, s ShiftBody) {
		weekday := c.Integer(name+".weekday", s.Weekday, true)
		if weekday != nil && (*weekday < 0 || *weekday > 6) {
			c.Reject(name+".weekday", "Must be between 0, for Monday, and 6.")
			weekday = nil
		}
		shift := Shift{Start: readClockTime(c, name+".start", s.Start), End: readClockTime(c, name+".end", s.End), User: readUserID(c, name+".user_id", s.UserID)}
		if weekday != nil {
			shift.Weekday = int(*weekday)
		}
		d.Shifts = append(d.Shifts, shift)
	})
	eachItem(c, "overrides", b.Overrides, func(name string, o OverrideBody) {
		override := Override{
			StartsAt: c.Instant(name+".starts_at", o.StartsAt, true).UTC(), EndsAt: c.Instant(name+".ends_at", o.EndsAt, true).UTC(),
			User: readUserID(c, name+".user_id", o.UserID),
		}
		if !override.StartsAt.IsZero() && !override.EndsAt.IsZero() && !override.EndsAt.After(override.StartsAt) {
			c.Reject(name+".ends_at", "Must be after starts_at.")
		}
		d.Overrides = append(d.Overrides, override)
	})
	return d
}

func eachItem[B any](c *validate.Checks, name string, list validate.Field[[]validate.Field[B]], read func(name string, item B)) {
	for name, item := range validate.Items(c, name, list, maxTurns, "Must be a list of objects.") {
		if !item.Given() {
			c.Reject(name, "Must be an object.")
			continue
		}
		read(name, item.Value)
	}
}

// readClockTime reads a wall-clock time.
func readClockTime(c *validate.Checks, name string, sent validate.String) string {
	text := c.Text(name, sent, validate.Required(0))
	if at, err := time.Parse(clockLayout, text); text != "" && (err != nil || at.Format(clockLayout) != text) {
		c.Reject(name, "Must be a time such as 07:30.")
	}
	return text
}

// readUserID returns the record id of a public user id; no user has id 0.
func readUserID(c *validate.Checks, name string, sent validate.Integer) string {
	id := c.Integer(name, sent, true)
	if id == nil {
		return ""
	}
	return collections.NumberID(max(*id, 0))
}
