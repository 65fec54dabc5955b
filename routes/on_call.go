package routes

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// onCallView is the on-call rota.
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

// onCallUserView names a user of the rota, because readers of the rota may not see the user list.
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

func viewPerson(p escalations.RotaPerson) onCallUserView {
	return onCallUserView{collections.Number(p.User), p.Name.Reveal(), p.Active}
}

// showOnCall answers with a rota and the names of its users.
func showOnCall(c *web.Call, rota escalations.Rota, err error) error {
	if err != nil {
		return err
	}
	people, err := escalations.RotaPeople(c.App, rota)
	return c.Respond(onCallView{
		TimeZone: rota.Zone.String(), Shifts: web.Map(rota.Shifts, viewShift), Overrides: web.Map(rota.Overrides, viewOverride),
		People: web.Map(people, viewPerson), UpdatedAt: instantOrNull(rota.UpdatedAt), UpdatedBy: orNull(rota.UpdatedBy),
	}, err)
}

func (a *api) readOnCall(c *web.Call) error {
	rota, err := escalations.ReadRota(c.App, a.Zone)
	return showOnCall(c, rota, err)
}

func (a *api) setOnCall(c *web.Call) error {
	draft, err := web.Read(c, escalations.RotaBody.Read)
	if err != nil {
		return err
	}
	rota, err := escalations.SetRota(c.App, draft, a.Zone, c.Actor(), c.Now)
	return showOnCall(c, rota, err)
}

// onCallNowView is the user on call now.
type onCallNowView struct {
	UserID *int64  `json:"user_id"`
	Until  *string `json:"until"`
}

func (a *api) readOnCallNow(c *web.Call) error {
	duty, err := escalations.OnCallNow(c.App, a.Zone, c.Now)
	return c.Respond(onCallNowView{numberOrNull(duty.User), instantOrNull(duty.Until)}, err)
}

// onCallTurnView is a period with its on-call user.
type onCallTurnView struct {
	StartsAt string  `json:"starts_at"`
	EndsAt   string  `json:"ends_at"`
	UserID   *int64  `json:"user_id"`
	Name     *string `json:"name"`
	Email    *string `json:"email"`
	Override bool    `json:"override"`
}

// turnsView lists the coming turns without gaps.
type turnsView struct {
	TimeZone string           `json:"time_zone"`
	Turns    []onCallTurnView `json:"turns"`
}

// The default and the largest number of days ahead; the rota repeats weekly.
const (
	daysAhead    = 7
	maxDaysAhead = 31
)

func (a *api) listTurns(c *web.Call) error {
	q, _ := c.Listing()
	days := q.Positive("days", daysAhead, maxDaysAhead)
	if err := q.Err(); err != nil {
		return err
	}
	rota, coming, err := escalations.UpcomingTurns(c.App, a.Zone, c.Now, c.Now.Add(time.Duration(days)*24*time.Hour))
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
	return c.OK(turnsView{TimeZone: rota.Zone.String(), Turns: web.Map(coming, func(t escalations.Turn) onCallTurnView {
		view := onCallTurnView{StartsAt: validate.FormatInstant(t.From), EndsAt: validate.FormatInstant(t.To), UserID: numberOrNull(t.User), Override: t.Override}
		if name, there := names[t.User]; there {
			view.Name, view.Email = orNull(name.First.Reveal()+" "+name.Last.Reveal()), orNull(emails[t.User])
		}
		return view
	})})
}
