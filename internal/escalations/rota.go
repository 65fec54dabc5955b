package escalations

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Shift is a weekly span in which a user is on call.
type Shift struct {
	// Weekday is the start day, 0 for Monday.
	Weekday int `json:"weekday"`
	// Start and End are wall-clock times, HH:MM. An End not after Start is on the next day.
	Start string `json:"start"`
	End   string `json:"end"`
	// User is a record id.
	User string `json:"user"`
}

// Override is a span in which a user is on call instead of the shifts.
type Override struct {
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	User     string    `json:"user"`
}

// Rota defines who is on call when.
type Rota struct {
	Zone      *time.Location
	Shifts    []Shift
	Overrides []Override
	UpdatedAt time.Time // zero until a rota is set
	UpdatedBy string
}

// Duty is the user on call and the end of the turn.
type Duty struct {
	User string // record id, "" for no one
	// Until is when the turn ends or another begins; with no one on call, when the next begins. Zero if nothing follows.
	Until time.Time
	// Override: not from a weekly shift.
	Override bool
}

// daysAhead is how far ahead shifts are considered: a week, and a day for a turn that began before it.
const daysAhead = 8

// At returns who is on call at a time. Ineligible users are skipped as if their turns did not exist. Where turns overlap, an override
// precedes a shift, then the later start, then the later place in the list. Source: docs/decisions/escalations.md, "On call".
func (r Rota) At(at time.Time, can func(user string) bool) Duty {
	turns := r.turns(at, can)
	now := turnInForce(turns, at)
	var changes []time.Time
	for _, turn := range turns {
		for _, edge := range []time.Time{turn.start, turn.end} {
			if edge.After(at) {
				changes = append(changes, edge)
			}
		}
	}
	slices.SortFunc(changes, time.Time.Compare)
	for _, edge := range changes {
		if turnInForce(turns, edge) != now {
			return duty(turns, now, edge)
		}
	}
	return duty(turns, now, time.Time{})
}

func duty(turns []turn, index int, until time.Time) Duty {
	if index < 0 {
		return Duty{Until: until}
	}
	return Duty{User: turns[index].user, Until: until, Override: turns[index].override}
}

// turn is one span of a shift or an override.
type turn struct {
	start, end time.Time
	override   bool
	order      int
	user       string
}

// before reports whether a turn precedes another where they overlap.
func (t turn) before(other turn) bool {
	if t.override != other.override {
		return t.override
	}
	return cmp.Or(t.start.Compare(other.start), cmp.Compare(t.order, other.order)) > 0
}

// turnInForce returns the index of the turn in force; -1 for none.
func turnInForce(turns []turn, at time.Time) int {
	found := -1
	for i, t := range turns {
		if !t.start.After(at) && t.end.After(at) && (found < 0 || t.before(turns[found])) {
			found = i
		}
	}
	return found
}

// turns returns all turns around a time.
func (r Rota) turns(at time.Time, can func(user string) bool) (turns []turn) {
	for i, o := range r.Overrides {
		if o.EndsAt.After(at) && can(o.User) {
			turns = append(turns, turn{o.StartsAt, o.EndsAt, true, i, o.User})
		}
	}
	if r.Zone == nil {
		return turns
	}
	year, month, today := at.In(r.Zone).Date()
	for date := today - 2; date <= today+daysAhead; date++ {
		weekday := (int(time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Weekday()) + 6) % 7
		for i, s := range r.Shifts {
			if s.Weekday != weekday || !can(s.User) {
				continue
			}
			last := date
			if s.End <= s.Start {
				last++
			}
			turns = append(turns, turn{
				moment(year, month, date, s.Start, r.Zone), moment(year, month, last, s.End, r.Zone), false, i, s.User,
			})
		}
	}
	return turns
}

// clockLayout is the format of a wall-clock time.
const clockLayout = "15:04"

// moment returns the first instant at which the wall clock shows a time of a day: the first of an hour that occurs twice, and the change
// itself for an hour that is skipped. So each turn ends where the next begins.
func moment(year int, month time.Month, date int, clock string, zone *time.Location) time.Time {
	at, _ := time.Parse(clockLayout, clock) // stored values are valid
	wall := time.Date(year, month, date, at.Hour(), at.Minute(), 0, 0, time.UTC)
	const farthest = 15 * time.Hour // no zone is farther from UTC, and none changes its clocks twice in so short a time
	earlier, later := offset(wall.Add(-farthest), zone), offset(wall.Add(farthest), zone)
	for _, by := range []time.Duration{max(earlier, later), min(earlier, later)} {
		if instant := wall.Add(-by); offset(instant, zone) == by {
			return instant.In(zone)
		}
	}
	start, _ := wall.Add(-earlier).In(zone).ZoneBounds()
	return start
}

// offset is how far the zone's clocks are ahead of UTC.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// Turn is a span of time with the user on call.
type Turn struct {
	From, To time.Time
	User     string // record id, "" for no one
	Override bool   // not from a weekly shift
}

// maxUpcomingTurns limits the turns returned.
const maxUpcomingTurns = 500

// UpcomingTurns returns the turns between two times without gaps; User is "" while no one is on call. The first and last turn are cut to
// the span.
// Source: docs/decisions/escalations.md, "On call".
func (r Rota) UpcomingTurns(from, to time.Time, can func(user string) bool) (coming []Turn) {
	for at := from; at.Before(to) && len(coming) < maxUpcomingTurns; {
		duty := r.At(at, can)
		end := duty.Until
		if end.IsZero() || end.After(to) {
			end = to
		}
		coming = append(coming, Turn{From: at, To: end, User: duty.User, Override: duty.Override})
		at = end
	}
	return coming
}

// UpcomingTurns returns the practice's rota and its turns between two times.
func UpcomingTurns(app core.App, practice *time.Location, from, to time.Time) (rota Rota, coming []Turn, err error) {
	if rota, err = ReadRota(app, practice); err != nil {
		return rota, nil, err
	}
	can, err := eligibleUsers(app)
	if err != nil {
		return rota, nil, err
	}
	return rota, rota.UpcomingTurns(from, to, can), nil
}

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
