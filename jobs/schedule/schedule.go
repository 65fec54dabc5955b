// Package schedule computes when jobs are due, and defines the public view of a job: its name, last run and next run. It runs no jobs.
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

// Plan defines when a job is due, in any time zone.
type Plan struct {
	cron         string
	hour, minute int
	weekday      time.Weekday
	weekly       bool
	timed        bool // due at one time of day
}

// Cron returns a plan of five fields: minute, hour, day of the month, month, day of the week.
func Cron(fields string) Plan { return Plan{cron: fields} }

// Daily returns a plan that is due once a day.
func Daily(hour, minute int) Plan {
	return Plan{cron: fmt.Sprintf("%d %d * * *", minute, hour), hour: hour, minute: minute, timed: true}
}

// Weekly returns a plan that is due once a week.
func Weekly(day time.Weekday, hour, minute int) Plan {
	return Plan{cron: fmt.Sprintf("%d %d * * %d", minute, hour, day), hour: hour, minute: minute, weekday: day, weekly: true, timed: true}
}

// String returns the plan as the five fields of cron.
func (p Plan) String() string { return p.cron }

// Definition returns the plan for the scheduler. Daily and weekly plans are not given as cron fields, because cron omits a time that a change to
// daylight saving time skips.
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

// dueOn returns the time at which the plan is due on a date; ok is false if it is not due that day.
func (p Plan) dueOn(year int, month time.Month, day int, zone *time.Location) (at time.Time, ok bool) {
	at = time.Date(year, month, day, p.hour, p.minute, 0, 0, zone)
	hour, minute, _ := at.Clock()
	if skipped := (p.hour-hour)*60 + p.minute - minute; skipped > 0 { // skipped by the change to daylight saving time: as much later
		at = at.Add(time.Duration(skipped) * time.Minute)
	}
	return at, !p.weekly || at.Weekday() == p.weekday
}

// Next returns when the plan is next due after a time, in that time's zone; the zero time for an invalid plan.
func (p Plan) Next(after time.Time) time.Time {
	if !p.timed {
		fields, err := cron.ParseStandard(p.cron)
		if err != nil {
			return time.Time{} // the scheduler rejects it, too
		}
		return fields.Next(after)
	}
	year, month, day := after.Date()
	for ahead := 0; ; ahead++ {
		if at, ok := p.dueOn(year, month, day+ahead, after.Location()); ok && at.After(after) {
			return at
		}
	}
}

// Last returns when a daily or weekly plan was last due, at or before a time; ok is false for other plans, which are due again soon.
func (p Plan) Last(until time.Time) (at time.Time, ok bool) {
	if !p.timed {
		return time.Time{}, false
	}
	year, month, day := until.Date()
	for back := 0; ; back++ {
		if at, ok := p.dueOn(year, month, day-back, until.Location()); ok && !at.After(until) {
			return at, true
		}
	}
}

// Errors of a manual run.
var (
	ErrNoSuchJob = errors.New("there is no such job")
	ErrRunning   = errors.New("the job is running")
)

// Job is the public view of a job.
type Job struct {
	// Name is the public name: lower case with hyphens.
	Name      string
	Plan      Plan
	LastRun   *collections.JobRun // nil if it never ran
	NextRunAt time.Time
}

// PublicName returns the public form of a job's name.
func PublicName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "-")) }
