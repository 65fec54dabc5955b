package billing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// instant formats a time in the practice's time zone as request bodies do.
func instant(text string) validate.String { return validate.Of(at(text).Format(time.RFC3339)) }

// callFor returns a request body for a ten-minute call.
func callFor(patient, start string) billing.TimeBody {
	return billing.TimeBody{
		PatientID: validate.Of(patient), Category: validate.Of("interactive"), Activity: validate.Of("phone_call"), ContactMethod: validate.Of("phone"),
		StartedAt: instant(start), Seconds: validate.Of(int64(600)), Notes: validate.Of("Talked"),
	}
}

// Which time entries are valid.
func TestParseTimeEntry(t *testing.T) {
	now := at("2026-01-15 12:00")
	for name, test := range map[string]struct {
		change  func(*billing.TimeBody)
		want    string
		seconds int
	}{
		"by its length":      {func(*billing.TimeBody) {}, "", 600},
		"by its end":         {func(b *billing.TimeBody) { b.Seconds, b.EndedAt = validate.Integer{}, instant("2026-01-15 09:15") }, "", 900},
		"by both":            {func(b *billing.TimeBody) { b.EndedAt = instant("2026-01-15 09:10") }, "", 600},
		"by two that differ": {func(b *billing.TimeBody) { b.EndedAt = instant("2026-01-15 09:11") }, "duration_seconds", 0},
		"by neither":         {func(b *billing.TimeBody) { b.Seconds = validate.Integer{} }, "ended_at", 0},
		"nothing":            {func(b *billing.TimeBody) { *b = billing.TimeBody{} }, "category patient_id started_at", 0},
		"no time at all":     {func(b *billing.TimeBody) { b.Seconds = validate.Of(int64(0)) }, "duration_seconds", 0},
		"a second":           {func(b *billing.TimeBody) { b.Seconds = validate.Of(int64(1)) }, "", 1},
		"four hours": {func(b *billing.TimeBody) {
			b.StartedAt, b.Seconds = instant("2026-01-15 08:00"), validate.Of(int64(14400))
		}, "", 14400},
		"a second more": {func(b *billing.TimeBody) {
			b.StartedAt, b.Seconds = instant("2026-01-15 07:00"), validate.Of(int64(14401))
		}, "duration_seconds", 0},
		"four hours and more by ends": {func(b *billing.TimeBody) { b.Seconds, b.EndedAt = validate.Integer{}, instant("2026-01-15 13:01") }, "ended_at", 0},
		"four hours by its end": {func(b *billing.TimeBody) {
			b.StartedAt, b.Seconds, b.EndedAt = instant("2026-01-15 08:00"), validate.Integer{}, instant("2026-01-15 12:00")
		}, "", 14400},
		"an end before its beginning": {func(b *billing.TimeBody) { b.Seconds, b.EndedAt = validate.Integer{}, instant("2026-01-15 08:59") }, "ended_at", 0},
		"an end that is no moment":    {func(b *billing.TimeBody) { b.Seconds, b.EndedAt = validate.Integer{}, validate.Of("soon") }, "ended_at", 0},
		"up to now":                   {func(b *billing.TimeBody) { b.StartedAt = instant("2026-01-15 11:50") }, "", 600},
		"beyond now":                  {func(b *billing.TimeBody) { b.StartedAt = instant("2026-01-15 11:51") }, "ended_at", 0},
		"from tomorrow":               {func(b *billing.TimeBody) { b.StartedAt = instant("2026-01-16 09:00") }, "started_at", 0},
		"thirty-five days ago":        {func(b *billing.TimeBody) { b.StartedAt = instant("2025-12-11 12:00") }, "", 600},
		"a minute before":             {func(b *billing.TimeBody) { b.StartedAt = instant("2025-12-11 11:59") }, "started_at", 0},
		"talk without notes":          {func(b *billing.TimeBody) { b.Notes = validate.String{} }, "notes", 0},
		"reading without notes":       {func(b *billing.TimeBody) { b.Notes, b.Category = validate.String{}, validate.Of("review") }, "", 600},
		"notes that are too long":     {func(b *billing.TimeBody) { b.Notes = validate.Of(strings.Repeat("x", 4001)) }, "notes", 0},
		"unknown words": {
			func(b *billing.TimeBody) {
				b.Category, b.Activity, b.ContactMethod = validate.Of("work"), validate.Of("lunch"), validate.Of("pigeon")
			},
			"activity category contact_method", 0,
		},
	} {
		body, checks := callFor(collections.NewUUID(), "2026-01-15 09:00"), validate.NewChecks()
		test.change(&body)
		draft := body.Read(checks, now)
		if wrong := wrongFields(checks.Err()); wrong != test.want {
			t.Errorf("%s: %q is wrong, want %q", name, wrong, test.want)
		} else if wrong == "" && (draft.Seconds != test.seconds || !draft.EndedAt.Equal(draft.StartedAt.Add(time.Duration(test.seconds)*time.Second))) {
			t.Errorf("%s: %d seconds until %v", name, draft.Seconds, draft.EndedAt)
		}
	}
}

// log creates a time entry as a user.
func (d *fixture) log(user *collections.User, body billing.TimeBody, when string) (*collections.TimeEntry, error) {
	d.t.Helper()
	checks := validate.NewChecks()
	draft := body.Read(checks, at(when))
	if err := checks.Err(); err != nil {
		d.t.Fatal(err)
	}
	return d.e.LogTime(d.app, user.Id, draft, d.by, at(when))
}

func (d *fixture) logged(user *collections.User, body billing.TimeBody, when string) *collections.TimeEntry {
	d.t.Helper()
	entry, err := d.log(user, body, when)
	if err != nil {
		d.t.Fatal(err)
	}
	return entry
}

func (d *fixture) time(number int64) *collections.TimeEntry {
	d.t.Helper()
	entry, err := collections.FindTimeEntry(d.app, number)
	if err != nil {
		d.t.Fatal(err)
	}
	return entry
}

// A user cannot be in two calls at once; other work may overlap.
func TestOverlappingTime(t *testing.T) {
	const now = "2026-01-15 18:00"
	d := newFixture(t)
	other := vigiltest.User(t, d.app, authz.Nurse)
	one, two, three := d.patient(), d.patient(), d.patient()
	d.logged(d.nurse, callFor(one, "2026-01-15 09:00"), now)
	d.logged(d.nurse, callFor(two, "2026-01-15 12:00"), now)
	review := callFor(one, "2026-01-15 09:05")
	review.Category = validate.Of("review")
	for name, test := range map[string]struct {
		user *collections.User
		body billing.TimeBody
		want string
	}{
		"the same minutes":     {d.nurse, callFor(one, "2026-01-15 09:00"), "started_at"},
		"with another patient": {d.nurse, callFor(two, "2026-01-15 09:09"), "started_at"},
		"begun before":         {d.nurse, callFor(two, "2026-01-15 08:51"), "started_at"},
		"up to its beginning":  {d.nurse, callFor(two, "2026-01-15 08:50"), ""},
		"from its end on":      {d.nurse, callFor(two, "2026-01-15 09:10"), ""},
		"another person's":     {other, callFor(three, "2026-01-15 09:05"), ""},
		"the same patient's":   {other, callFor(one, "2026-01-15 09:05"), "started_at"},
		"what is no talk":      {d.nurse, review, ""},
	} {
		_, err := d.log(test.user, test.body, now)
		d.want(name, wrongFields(err), test.want)
	}
	_, err := d.log(other, callFor(two, "2026-01-15 12:02"), now)
	d.want("another person's of the patient", refused(err), billing.OverlapTime)

	gone, archived := d.patient(), d.patient(func(c *oracleCase) { c.archived = at("2026-01-10 12:00") })
	d.exec("UPDATE patients SET deleted_at = {:at} WHERE id = {:p}", dbx.Params{"at": collections.FormatInstant(at("2026-01-10 12:00")), "p": gone})
	for _, nobody := range []string{gone, collections.NewUUID()} {
		_, err := d.log(d.nurse, callFor(nobody, "2026-01-15 14:00"), now)
		d.want("unknown", refused(err), "not_found")
	}
	_, err = d.log(d.nurse, callFor(archived, "2026-01-09 14:00"), now)
	d.want("an archived patient's", refused(err), "")
}

// A user has at most one timer, which ends after an hour at the latest, and only its owner stops it.
func TestTimers(t *testing.T) {
	d := newFixture(t)
	other := vigiltest.User(t, d.app, authz.MA)
	patient, archived := d.patient(), d.patient(func(c *oracleCase) { c.archived = at("2026-01-10 12:00") })
	start := func(user *collections.User, patient, when string) (*collections.TimeEntry, string) {
		entry, err := d.e.StartTimer(d.app, user.Id, billing.TimeDraft{PatientID: patient, Category: collections.ReviewTime}, d.by, at(when))
		return entry, refused(err)
	}
	stop := func(number int64, user string, body billing.TimeBody, when string) string {
		_, err := d.e.StopTimer(d.app, number, user, body, d.by, at(when))
		return refused(err)
	}
	mine, got := start(d.nurse, patient, "2026-01-15 09:00")
	d.want("started", got, "")
	_, got = start(d.nurse, d.patient(), "2026-01-15 09:01")
	d.want("a second", got, "invalid_state")
	theirs, got := start(other, patient, "2026-01-15 09:01")
	d.want("another user's", got, "")
	_, got = start(vigiltest.User(t, d.app, authz.Nurse), archived, "2026-01-15 09:01")
	d.want("for an archived patient", got, "invalid_state")
	d.want("another user's, stopped", stop(theirs.Number(), d.nurse.Id, billing.TimeBody{}, "2026-01-15 09:10"), "not_found")
	d.want("unknown, stopped", stop(999, d.nurse.Id, billing.TimeBody{}, "2026-01-15 09:10"), "not_found")
	_, err := d.e.UpdateTime(d.app, mine.Number(), d.nurse.Id, billing.TimeBody{Notes: validate.Of("Read")}, d.by, at("2026-01-15 09:10"))
	d.want("changed while it runs", refused(err), "invalid_state")
	d.want("stopped with unknown words", stop(mine.Number(), d.nurse.Id, billing.TimeBody{Category: validate.Of("work")}, "2026-01-15 09:10"), "validation_error")
	lie := billing.TimeBody{ // the request describes the work, never its duration
		Category: validate.Of("interpretation"), Notes: validate.Of("Read"), StartedAt: instant("2026-01-15 05:00"), Seconds: validate.Of(int64(14400)),
	}
	d.want("stopped", stop(mine.Number(), d.nurse.Id, lie, "2026-01-15 09:10"), "")
	if x := d.time(mine.Number()); x.Seconds() != 600 || x.Category() != "interpretation" || x.Notes() != "Read" || x.GetBool("auto_stopped") || !x.StartedAt().Equal(at("2026-01-15 09:00")) {
		t.Errorf("%d seconds of %s", x.Seconds(), x.Category())
	}
	d.want("stopped again", stop(mine.Number(), d.nurse.Id, billing.TimeBody{}, "2026-01-15 09:20"), "invalid_state")
	for when, want := range map[string]string{"2026-01-15 10:00": "0s 1 false", "2026-01-15 11:00": "1h0m0s 3600 false", "2026-01-15 11:01": "1h0m0s 3600 true", "2026-01-17 10:00": "1h0m0s 3600 true"} {
		d.exec("DELETE FROM time_entries WHERE user = {:u}", dbx.Params{"u": d.nurse.Id})
		timer, _ := start(d.nurse, patient, "2026-01-15 10:00")
		d.want("stopped by an administrator", stop(timer.Number(), "", billing.TimeBody{}, when), "")
		x := d.time(timer.Number())
		d.want("stopped at "+when, fmt.Sprint(x.EndedAt().Sub(x.StartedAt()).Truncate(time.Minute), " ", x.Seconds(), " ", x.GetBool("auto_stopped")), want)
	}
}

// A running timer stops automatically after an hour; an unreadable one is logged and does not keep others running.
func TestTimersStopAutomatically(t *testing.T) {
	d := newFixture(t)
	var timers []*collections.TimeEntry
	for _, when := range []string{"2026-01-15 09:00", "2026-01-15 09:30", "2026-01-15 09:31"} {
		entry, err := d.e.StartTimer(d.app, vigiltest.User(t, d.app, authz.Nurse).Id, billing.TimeDraft{PatientID: d.patient(), Category: collections.ReviewTime}, d.by, at(when))
		if err != nil {
			t.Fatal(err)
		}
		timers = append(timers, entry)
	}
	if n, err := d.e.StopOverdueTimers(d.app, at("2026-01-15 10:30")); err != nil || n != 2 {
		t.Errorf("stopped %d, %v", n, err)
	}
	for i, running := range []bool{false, false, true} {
		x := d.time(timers[i].Number())
		if x.Running() != running || !running && (x.Seconds() != 3600 || !x.GetBool("auto_stopped")) {
			t.Errorf("timer %d runs: %v, %d seconds", i, x.Running(), x.Seconds())
		}
	}
	entry, err := d.e.StartTimer(d.app, d.nurse.Id, billing.TimeDraft{PatientID: d.patient(), Category: collections.ReviewTime, Notes: "Read"}, d.by, at("2026-01-15 09:31"))
	if err != nil {
		t.Fatal(err)
	}
	d.exec("UPDATE time_entries SET notes = 'v1:test:AAAA:BBBB' WHERE id = {:id}", dbx.Params{"id": entry.Id})
	if n, err := d.e.StopOverdueTimers(d.app, at("2026-01-15 11:00")); n != 1 || !collections.IsUnreadable(err) {
		t.Errorf("beside one that cannot be read: stopped %d, %v", n, err)
	}
}

// Which changes of a time entry are permitted, for each user.
func TestChangeTime(t *testing.T) {
	const now = "2026-01-15 18:00"
	d := newFixture(t)
	patient := d.patient()
	entry := d.logged(d.nurse, callFor(patient, "2026-01-15 09:00"), now)
	d.logged(d.nurse, callFor(patient, "2026-01-15 11:00"), now)
	review := callFor(patient, "2026-01-15 12:00")
	review.Category, review.Notes = validate.Of("review"), validate.String{}
	silent := d.logged(d.nurse, review, now)
	change := func(x *collections.TimeEntry, user string, body billing.TimeBody) string {
		_, err := d.e.UpdateTime(d.app, x.Number(), user, body, d.by, at(now))
		return wrongFields(err)
	}
	state := func() string {
		x := d.time(entry.Number())
		return fmt.Sprint(x.StartedAt().In(newYork).Format("15:04"), " ", x.EndedAt().In(newYork).Format("15:04"), " ", x.Seconds(), " ", x.Category(), " ", x.GetString("activity"), " ", x.Notes().Reveal())
	}
	for _, step := range []struct {
		body billing.TimeBody
		want string
	}{
		{billing.TimeBody{}, "09:00 09:10 600 interactive phone_call Talked"},
		{billing.TimeBody{Activity: validate.Of("video_call")}, "09:00 09:10 600 interactive video_call Talked"},
		{billing.TimeBody{StartedAt: instant("2026-01-15 09:30")}, "09:30 09:40 600 interactive video_call Talked"}, // unchanged duration
		{billing.TimeBody{EndedAt: instant("2026-01-15 10:00")}, "09:30 10:00 1800 interactive video_call Talked"},
		{billing.TimeBody{Seconds: validate.Of(int64(60))}, "09:30 09:31 60 interactive video_call Talked"},
		{billing.TimeBody{Notes: validate.Of("Asked"), StartedAt: instant("2026-01-15 09:00"), Seconds: validate.Of(int64(7200))}, "09:00 11:00 7200 interactive video_call Asked"},
	} {
		d.want("changed", change(entry, d.nurse.Id, step.body), "")
		d.want("changed", state(), step.want)
	}
	before := state()
	for name, test := range map[string]struct {
		user string
		body billing.TimeBody
		want string
	}{
		"another user's":  {"somebody", billing.TimeBody{Notes: validate.Of("Mine?")}, ""},
		"into another":    {d.nurse.Id, billing.TimeBody{Seconds: validate.Of(int64(7201))}, "started_at"},
		"without notes":   {d.nurse.Id, billing.TimeBody{Notes: validate.Of("")}, "notes"},
		"into the future": {d.nurse.Id, billing.TimeBody{StartedAt: instant("2026-01-15 17:00")}, "ended_at"},
		"too long":        {d.nurse.Id, billing.TimeBody{Seconds: validate.Of(int64(14401))}, "duration_seconds"},
		"unknown words":   {d.nurse.Id, billing.TimeBody{Activity: validate.Of("lunch")}, "activity"},
	} {
		got := change(entry, test.user, test.body)
		d.want(name, got, test.want)
		d.want(name, state(), before)
	}
	_, err := d.e.UpdateTime(d.app, entry.Number(), "somebody", billing.TimeBody{Notes: validate.Of("Mine?")}, d.by, at(now))
	d.want("another user's", refused(err), "not_found")
	d.want("reading becomes talk without notes", change(silent, d.nurse.Id, billing.TimeBody{Category: validate.Of("interactive")}), "notes")
	d.want("with notes", change(silent, d.nurse.Id, billing.TimeBody{Category: validate.Of("interactive"), Notes: validate.Of("Talked")}), "")
	d.want("anybody's, by who may", change(entry, "", billing.TimeBody{Notes: validate.Of("Checked")}), "")

	// billed time stays; other time can be deleted, and the audit trail keeps it
	d.run(billing.TimeJob, now)
	for _, fixed := range []error{
		func() error {
			_, err := d.e.UpdateTime(d.app, entry.Number(), "", billing.TimeBody{}, d.by, at(now))
			return err
		}(),
		d.e.DeleteTime(d.app, entry.Number(), "", d.by, at(now)),
	} {
		d.want("billed", refused(fixed), "invalid_state")
	}
	loose := d.logged(d.nurse, callFor(patient, "2026-01-15 16:00"), now)
	d.want("another user's removed", refused(d.e.DeleteTime(d.app, loose.Number(), "somebody", d.by, at(now))), "not_found")
	d.want("removed", refused(d.e.DeleteTime(d.app, loose.Number(), d.nurse.Id, d.by, at(now))), "")
	d.want("removed again", refused(d.e.DeleteTime(d.app, loose.Number(), d.nurse.Id, d.by, at(now))), "not_found")
	var trail string
	if err := d.app.DB().NewQuery("SELECT GROUP_CONCAT(event, ' ') FROM audit_log WHERE resource_type = 'TimeEntry' AND resource_id = {:n}").
		Bind(dbx.Params{"n": fmt.Sprint(loose.Number())}).Row(&trail); err != nil || trail != "time_entry.create time_entry.delete" {
		t.Errorf("recorded %s, %v", trail, err)
	}
}

// A month's time by patient, in whole minutes of the practice's month; running timers do not count.
func TestTimeSummary(t *testing.T) {
	d := newFixture(t)
	timed := func(start string, seconds int, category string) func(*oracleCase) {
		return func(c *oracleCase) {
			c.times = append(c.times, oracleTime{at(start), seconds, category, "manual", true})
		}
	}
	one := d.patient(timed("2026-01-01 00:00", 59, "interactive"), timed("2026-01-31 23:59", 1141, "interactive"), timed("2026-01-10 09:00", 119, "review"),
		timed("2026-01-11 09:00", 1800, "interpretation"), timed("2026-01-12 09:00", 600, "care_management"), timed("2025-12-31 23:50", 600, "interactive"), timed("2026-02-01 00:00", 600, "interactive"))
	two := d.patient(timed("2026-01-10 09:00", 4800, "interactive"))
	if _, err := d.e.StartTimer(d.app, d.nurse.Id, billing.TimeDraft{PatientID: two, Category: collections.ReviewTime}, d.by, at("2026-01-15 09:00")); err != nil {
		t.Fatal(err)
	}
	month, ok := billing.MonthSpan("2026-01")
	if !ok || month != (billing.Span{Start: "2026-01-01", End: "2026-01-31"}) {
		t.Fatalf("%v", month)
	}
	sums := func(user, patient, team string) (lines []string) {
		list, err := d.e.TimeSummary(d.app, month, user, patient, team)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			next := "none"
			if x.NextThreshold != nil {
				next = fmt.Sprint(*x.NextThreshold)
			}
			lines = append(lines, fmt.Sprint(x.PatientID == one, x.Interactive, x.Review, x.Interpretation, " ", next))
		}
		return lines
	}
	first, second := "true 20 1 30 40", "false 80 0 0 none"
	for name, test := range map[string]struct{ got, want []string }{
		"all": {sums("", "", ""), []string{first, second}}, "a user's": {sums(d.nurse.Id, "", ""), []string{first, second}}, "unknown user's": {sums("x", "", ""), nil},
		"a patient's": {sums("", two, ""), []string{second}}, "a team's": {sums("", "", "x"), nil},
	} {
		d.want(name, fmt.Sprint(test.got), fmt.Sprint(test.want))
	}
	for _, wrong := range []string{"", "2026", "2026-13", "2026-1", "2026-01-01", "x026-01"} {
		if span, ok := billing.MonthSpan(wrong); ok {
			t.Errorf("%q is %v", wrong, span)
		}
	}
	if leap, ok := billing.MonthSpan("2028-02"); !ok || leap.End != "2028-02-29" {
		t.Errorf("February is %v", leap)
	}
}
