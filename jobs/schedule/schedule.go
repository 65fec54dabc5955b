// Package schedule knows when jobs are due, and how people see them: their names, when they ran last and run next. It refuses to know what a job
// does, and runs none.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/vigilhealth/vigil/collections"
)

// Plan says when a job is due, in whatever zone it is asked.
type Plan struct {
	cron         string
	hour, minute int
	weekday      time.Weekday
	weekly       bool
	timed        bool // due at one time of a day
}

// Cron is due by five fields: minute, hour, day of the month, month, day of the week.
func Cron(fields string) Plan { return Plan{cron: fields} }

// Daily is due once a day.
func Daily(hour, minute int) Plan {
	return Plan{cron: fmt.Sprintf("%d %d * * *", minute, hour), hour: hour, minute: minute, timed: true}
}

// Weekly is due once a week.
func Weekly(day time.Weekday, hour, minute int) Plan {
	return Plan{cron: fmt.Sprintf("%d %d * * %d", minute, hour, day), hour: hour, minute: minute, weekday: day, weekly: true, timed: true}
}

// String is the plan in the five fields of cron.
func (p Plan) String() string { return p.cron }

// Definition is the plan as the scheduler takes it. Daily and weekly ones are not given as fields: cron leaves out a time that a change of
// the clock skips.
func (p Plan) Definition() gocron.JobDefinition {
	at := gocron.NewAtTimes(gocron.NewAtTime(uint(p.hour), uint(p.minute), 0))
	switch {
	case p.weekly:
		return gocron.WeeklyJob(1, gocron.NewWeekdays(p.weekday), at)
	case p.timed:
		return gocron.DailyJob(1, at)
	}
	return gocron.CronJob(p.cron, false)
}

// on is the time of a day that the plan is due at; ok is false when it is another day's.
func (p Plan) on(year int, month time.Month, day int, zone *time.Location) (at time.Time, ok bool) {
	at = time.Date(year, month, day, p.hour, p.minute, 0, 0, zone)
	hour, minute, _ := at.Clock()
	if skipped := (p.hour-hour)*60 + p.minute - minute; skipped > 0 { // by a clock that was put forward: as much later
		at = at.Add(time.Duration(skipped) * time.Minute)
	}
	return at, !p.weekly || at.Weekday() == p.weekday
}

// Next is when the plan is due after a time, in that time's zone; zero for one that is never due.
func (p Plan) Next(after time.Time) time.Time {
	if !p.timed {
		fields, err := cron.ParseStandard(p.cron)
		if err != nil {
			return time.Time{} // the scheduler refuses it, too
		}
		return fields.Next(after)
	}
	year, month, day := after.Date()
	for ahead := 0; ; ahead++ {
		if at, ok := p.on(year, month, day+ahead, after.Location()); ok && at.After(after) {
			return at
		}
	}
}

// Last is when a plan of one time a day or a week was due last, at a time or before; ok is false for the others, which are due again soon.
func (p Plan) Last(until time.Time) (at time.Time, ok bool) {
	if !p.timed {
		return time.Time{}, false
	}
	year, month, day := until.Date()
	for back := 0; ; back++ {
		if at, ok := p.on(year, month, day-back, until.Location()); ok && !at.After(until) {
			return at, true
		}
	}
}

// What a run by hand may fail with.
var (
	ErrNoSuchJob = errors.New("there is no such job")
	ErrRunning   = errors.New("the job is running")
)

// Job is one job as people see it.
type Job struct {
	// Name is what it is called by from outside: small letters, with hyphens.
	Name      string
	Plan      Plan
	LastRun   *collections.JobRun // nil when it never ran
	NextRunAt time.Time
}

// PublicName is the name of a job from outside.
func PublicName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "-")) }
