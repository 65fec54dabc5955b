package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Turn is a stretch of time with whoever is on call in it.
type Turn struct {
	From, To time.Time
	User     string // record id, "" for nobody
	Override bool   // not by the week
}

// mostComing bounds how many turns are told ahead.
const mostComing = 500

// Coming are the turns between two moments, without a hole: where nobody is on call there is one of nobody. The ends are those asked for.
// Source: docs/decisions/escalations.md, "On call".
func (r Rota) Coming(from, to time.Time, can func(user string) bool) (coming []Turn) {
	for at := from; at.Before(to) && len(coming) < mostComing; {
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

// Coming are the turns of the practice's rota between two moments, and the people in them.
func Coming(app core.App, practice *time.Location, from, to time.Time) (rota Rota, coming []Turn, err error) {
	if rota, err = Read(app, practice); err != nil {
		return rota, nil, err
	}
	can, err := able(app)
	if err != nil {
		return rota, nil, err
	}
	return rota, rota.Coming(from, to, can), nil
}
