package routes

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// onCallView is the rota.
type onCallView struct {
	TimeZone  string           `json:"time_zone"`
	Shifts    []shiftView      `json:"shifts"`
	Overrides []overrideView   `json:"overrides"`
	People    []onCallUserView `json:"people"`
	UpdatedAt *string          `json:"updated_at"`
	UpdatedBy *string          `json:"updated_by"`
}

type shiftView struct {
	Weekday int    `json:"weekday"`
	Start   string `json:"start"`
	End     string `json:"end"`
	UserID  int64  `json:"user_id"`
}

type overrideView struct {
	StartsAt string `json:"starts_at"`
	EndsAt   string `json:"ends_at"`
	UserID   int64  `json:"user_id"`
}

// onCallUserView is somebody whom the rota names: whoever reads it may not see the list of users.
type onCallUserView struct {
	UserID int64  `json:"user_id"`
	Name   string `json:"name"`
	Active bool   `json:"active"`
}

func viewShift(s escalations.Shift) shiftView {
	return shiftView{s.Weekday, s.Start, s.End, collections.Number(s.User)}
}

func viewOverride(o escalations.Override) overrideView {
	return overrideView{validate.FormatInstant(o.StartsAt), validate.FormatInstant(o.EndsAt), collections.Number(o.User)}
}

func viewPerson(p escalations.Person) onCallUserView {
	return onCallUserView{collections.Number(p.User), p.Name.Reveal(), p.Active}
}

// showOnCall answers with a rota and the names of those in it.
func showOnCall(c *web.Call, rota escalations.Rota, err error) error {
	if err != nil {
		return err
	}
	people, err := escalations.People(c.App, rota)
	return c.Answer(onCallView{
		TimeZone: rota.Zone.String(), Shifts: web.Views(rota.Shifts, viewShift), Overrides: web.Views(rota.Overrides, viewOverride),
		People: web.Views(people, viewPerson), UpdatedAt: instantOrNull(rota.UpdatedAt), UpdatedBy: orNull(rota.UpdatedBy),
	}, err)
}

func (a *api) readOnCall(c *web.Call) error {
	rota, err := escalations.Read(c.App, a.Zone)
	return showOnCall(c, rota, err)
}

func (a *api) setOnCall(c *web.Call) error {
	draft, err := web.Read(c, escalations.RotaBody.Read)
	if err != nil {
		return err
	}
	rota, err := escalations.Set(c.App, draft, a.Zone, c.Actor(), c.Now)
	return showOnCall(c, rota, err)
}

// onCallNowView says who is on call.
type onCallNowView struct {
	UserID *int64  `json:"user_id"`
	Until  *string `json:"until"`
}

func (a *api) readOnCallNow(c *web.Call) error {
	duty, err := escalations.Now(c.App, a.Zone, c.Now)
	return c.Answer(onCallNowView{numberOrNull(duty.User), instantOrNull(duty.Until)}, err)
}

// turnView is a stretch of time with whoever is on call in it.
type turnView struct {
	StartsAt string  `json:"starts_at"`
	EndsAt   string  `json:"ends_at"`
	UserID   *int64  `json:"user_id"`
	Name     *string `json:"name"`
	Email    *string `json:"email"`
	Override bool    `json:"override"`
}

// turnsView is what comes, without a hole.
type turnsView struct {
	TimeZone string     `json:"time_zone"`
	Turns    []turnView `json:"turns"`
}

// Turns are told so many days ahead, by default and at most: the rota is the same each week.
const (
	daysAhead     = 7
	mostDaysAhead = 31
)

func (a *api) listTurns(c *web.Call) error {
	q, _ := c.Listing()
	days := q.Positive("days", daysAhead, mostDaysAhead)
	if err := q.Err(); err != nil {
		return err
	}
	rota, coming, err := escalations.Coming(c.App, a.Zone, c.Now, c.Now.Add(time.Duration(days)*24*time.Hour))
	if err != nil {
		return err
	}
	names, err := collections.UserNames(c.App, distinct(coming, func(t escalations.Turn) string { return t.User }))
	if err != nil {
		return err
	}
	people, err := collections.UsersByID(c.App, distinct(coming, func(t escalations.Turn) string { return t.User }))
	if err != nil {
		return err
	}
	emails := make(map[string]string, len(people))
	for _, user := range people {
		emails[user.Id] = user.Email()
	}
	return c.OK(turnsView{TimeZone: rota.Zone.String(), Turns: web.Views(coming, func(t escalations.Turn) turnView {
		view := turnView{StartsAt: validate.FormatInstant(t.From), EndsAt: validate.FormatInstant(t.To), UserID: numberOrNull(t.User), Override: t.Override}
		if name, there := names[t.User]; there {
			view.Name, view.Email = orNull(name.First.Reveal()+" "+name.Last.Reveal()), orNull(emails[t.User])
		}
		return view
	})})
}
