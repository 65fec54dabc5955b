package routes

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/routes/web"
)

// The orders of the list of escalations.
const (
	newestFirst = "-created_at"
	byUrgency   = "urgency"
)

// waiting is what of an escalation says when the next step follows, and whose it is; nulls when it is over.
type waiting struct {
	AssignedName *string `json:"assigned_name"`
	Taken        bool    `json:"taken"`
	WaitsSince   *string `json:"waits_since"`
	TierAt       *string `json:"tier_at"`
	WorksSince   *string `json:"works_since"`
}

// waitings are of each escalation, by record id.
func waitings(app core.App, page []*collections.Escalation) (map[string]waiting, error) {
	ids := web.Views(page, func(e *collections.Escalation) string { return e.Id })
	taken, err := collections.TakenEscalations(app, ids)
	if err != nil {
		return nil, err
	}
	names, err := collections.StaffNames(app, distinct(page, (*collections.Escalation).AssignedTo))
	if err != nil {
		return nil, err
	}
	waits := make(map[string]waiting, len(page))
	for _, e := range page {
		w := waiting{AssignedName: orNull(names[e.AssignedTo()].Reveal()), Taken: taken[e.Id]}
		switch {
		case escalations.Status(e.Status()).Closed():
		case w.Taken:
			w.WorksSince = instantOrNull(slices.MaxFunc([]time.Time{e.WorksSince(), e.RemindedAt()}, time.Time.Compare))
		default:
			w.WaitsSince, w.TierAt = instantOrNull(e.WaitsSince()), instantOrNull(e.TierAt())
		}
		waits[e.Id] = w
	}
	return waits, nil
}

// deadlinesView is how long an escalation of a priority may wait to be taken before the next are told, in seconds since it began to wait.
type deadlinesView struct {
	OnCall   int64 `json:"on_call_seconds"`
	Managers int64 `json:"managers_seconds"`
	Everyone int64 `json:"everyone_seconds"`
}

// allDeadlinesView is the ladder as the settings have it.
type allDeadlinesView struct {
	Stat    deadlinesView `json:"stat"`
	Urgent  deadlinesView `json:"urgent"`
	Routine deadlinesView `json:"routine"`
	// Note is how long work may go on without a note.
	Note int64 `json:"note_seconds"`
}

func (a *api) readDeadlines(c *web.Call) error {
	of := func(p escalations.Priority) deadlinesView {
		d := a.Ladder.Tiers[p]
		return deadlinesView{seconds(d[0]), seconds(d[1]), seconds(d[2])}
	}
	return c.OK(allDeadlinesView{of(escalations.Stat), of(escalations.Urgent), of(escalations.Routine), seconds(escalations.IdleAfter)})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
