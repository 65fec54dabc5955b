package escalations

import (
	"cmp"
	"slices"
	"time"
)

// Shift is a stretch of every week in which somebody is on call.
type Shift struct {
	// Weekday is that on which it starts, 0 for Monday.
	Weekday int `json:"weekday"`
	// Start and End are what the clock on the wall shows, HH:MM. One that does not end after it starts ends on the next day.
	Start string `json:"start"`
	End   string `json:"end"`
	// User is a record id.
	User string `json:"user"`
}

// Override is a stretch of time in which somebody is on call whatever the shifts say.
type Override struct {
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	User     string    `json:"user"`
}

// Rota is who is on call when.
type Rota struct {
	Zone      *time.Location
	Shifts    []Shift
	Overrides []Override
	UpdatedAt time.Time // zero while nobody has set one
	UpdatedBy string
}

// Duty says who is on call, until when this turn lasts.
type Duty struct {
	User string // record id, "" for nobody
	// Until is when the turn ends or another begins; without anybody, when the next one begins. Zero when nothing follows.
	Until time.Time
	// Override: it is not by the week.
	Override bool
}

// horizon is how far ahead shifts are looked at: a week, and a day for what begins before it.
const horizon = 8

// At says who is on call at a moment. Those who cannot be are left out, as if their turns were not there. Where turns overlap, an override goes before
// a shift, then the one that began later, then the one later in the list. Source: docs/decisions/escalations.md, "On call".
func (r Rota) At(at time.Time, can func(user string) bool) Duty {
	turns := r.turns(at, can)
	now := inForce(turns, at)
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
		if inForce(turns, edge) != now {
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

// turn is one stretch of time of a shift or an override.
type turn struct {
	start, end time.Time
	override   bool
	order      int
	user       string
}

// before reports whether a turn goes before another where they overlap.
func (t turn) before(other turn) bool {
	if t.override != other.override {
		return t.override
	}
	return cmp.Or(t.start.Compare(other.start), cmp.Compare(t.order, other.order)) > 0
}

// inForce is the index of the turn that holds at a moment; -1 for none.
func inForce(turns []turn, at time.Time) int {
	found := -1
	for i, t := range turns {
		if !t.start.After(at) && t.end.After(at) && (found < 0 || t.before(turns[found])) {
			found = i
		}
	}
	return found
}

// turns are all around a moment.
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
	for date := today - 2; date <= today+horizon; date++ {
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

// clockLayout is how the time of a wall clock is written.
const clockLayout = "15:04"

// moment is the first moment at which the clock on the wall shows a time of a day: of an hour that comes twice the first, and for one that the clocks
// skip the moment at which they do. So one turn ends where the next begins, whatever the clocks do.
func moment(year int, month time.Month, date int, clock string, zone *time.Location) time.Time {
	at, _ := time.Parse(clockLayout, clock) // what is stored was checked
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

// offset is how far the clocks of a zone are ahead of UTC.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
