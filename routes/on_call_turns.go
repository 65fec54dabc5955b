package routes

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/oncall"
	"github.com/vigilhealth/vigil/routes/web"
)

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
	rota, coming, err := oncall.Coming(c.App, a.Zone, c.Now, c.Now.Add(time.Duration(days)*24*time.Hour))
	if err != nil {
		return err
	}
	names, err := collections.UserNames(c.App, distinct(coming, func(t oncall.Turn) string { return t.User }))
	if err != nil {
		return err
	}
	people, err := collections.UsersByID(c.App, distinct(coming, func(t oncall.Turn) string { return t.User }))
	if err != nil {
		return err
	}
	emails := make(map[string]string, len(people))
	for _, user := range people {
		emails[user.Id] = user.Email()
	}
	return c.OK(turnsView{TimeZone: rota.Zone.String(), Turns: web.Views(coming, func(t oncall.Turn) turnView {
		view := turnView{StartsAt: input.FormatInstant(t.From), EndsAt: input.FormatInstant(t.To), UserID: numberOrNull(t.User), Override: t.Override}
		if name, there := names[t.User]; there {
			view.Name, view.Email = orNull(name.First.Reveal()+" "+name.Last.Reveal()), orNull(emails[t.User])
		}
		return view
	})})
}
