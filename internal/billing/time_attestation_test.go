package billing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/validate"
)

// times returns the numbers of a patient's time entries, by start.
func (d *fixture) times(patient string) (numbers []int64) {
	d.t.Helper()
	list, _, err := collections.PageOfTimeEntries(d.app, collections.TimeFilter{PatientID: patient}, 0, 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, x := range slices.Backward(list) {
		numbers = append(numbers, x.Number())
	}
	return numbers
}

func (d *fixture) attestAll(patient string, by audit.Actor) {
	d.t.Helper()
	for _, n := range d.times(patient) {
		if _, err := d.e.AttestTime(d.app, n, "", by, at("2026-01-21 09:00")); err != nil {
			d.t.Fatal(err)
		}
	}
}

func escalated(start string, minutes int) func(*oracleCase) {
	return func(c *oracleCase) {
		c.times = append(c.times, oracleTime{at(start), minutes * 60, "interactive", "escalation", true})
	}
}

// The user who spent the minutes of an escalation, or a clinical manager, attests them; only then can the entry be reviewed.
func TestAttest(t *testing.T) {
	d := newFixture(t)
	mine := audit.User(7, d.nurse.Email(), "nurse", audit.Origin{})
	manager := audit.User(8, "manager@vigil.test", "clinical_manager", audit.Origin{})
	patient := d.patient(escalated("2026-01-10 09:00", 25), escalated("2026-01-12 09:00", 25))
	d.run(billing.TimeJob, "2026-01-20 09:00")
	first, next := d.entry(patient, billing.FirstTwenty), d.entry(patient, billing.NextTwenty)
	attest := func(n int64, by audit.Actor) string {
		_, err := d.e.AttestTime(d.app, n, "", by, at("2026-01-21 09:00"))
		return refused(err)
	}
	review := func(entry *collections.BillingEntry, by audit.Actor, attested bool) string {
		_, got := d.do(entry, d.e.Review(by, "", "", attested, changesTime))
		return got
	}
	numbers := d.times(patient)
	for _, by := range []audit.Actor{d.by, audit.User(9, "admin@vigil.test", "admin", audit.Origin{}), audit.User(9, "other@vigil.test", "nurse", audit.Origin{})} {
		d.want("another user", attest(numbers[0], by), billing.NotAuthor)
	}
	d.want("none", attest(99999, mine), "not_found")
	d.want("mine", attest(numbers[0], mine), "")
	d.want("again", attest(numbers[0], manager), "")
	if x := d.time(numbers[0]); x.AttestedBy() != d.nurse.Email() || !x.AttestedAt().Equal(at("2026-01-21 09:00")) || x.NeedsAttestation() {
		t.Errorf("attested by %s at %v", x.AttestedBy(), x.AttestedAt())
	}
	// the first stretch supports both entries, the second only the next twenty minutes
	d.want("the first twenty", fmt.Sprint(d.entry(patient, billing.FirstTwenty).Warnings()), "[]")
	d.want("the next twenty", fmt.Sprint(d.entry(patient, billing.NextTwenty).Warnings()), "[attest_interaction]")
	d.want("the first twenty, by the biller", review(first, d.by, false), "")
	d.want("the next twenty, by the biller", review(next, d.by, true), billing.NotAuthor)
	d.want("the next twenty, attested by a manager", attest(numbers[1], manager), "")
	d.want("the next twenty, then", review(next, d.by, false), "")

	// a reviewer attests own minutes with the review
	own := d.patient(escalated("2026-01-14 09:00", 20))
	d.run(billing.TimeJob, "2026-01-22 09:00")
	entry := d.entry(own, billing.FirstTwenty)
	d.want("their own, unsaid", review(entry, mine, false), "invalid_state")
	d.want("their own", review(entry, mine, true), "")
	if x := d.time(d.times(own)[0]); x.AttestedBy() != d.nurse.Email() {
		t.Errorf("attested by %q", x.AttestedBy())
	}
	// a manual entry does not avoid the attestation while its minutes do not suffice without
	byHand := d.patient(escalated("2026-01-15 09:00", 12), talked("2026-01-16 09:00", 10))
	made := d.made(byHand, billing.FirstTwenty, "2026-01-16", 20, "2026-01-17 09:00")
	d.want("by hand", review(made, d.by, true), billing.NotAuthor)
	d.insert(byHand, logRow{d.nurse.Id, "interactive", "phone", "manual", at("2026-01-16 10:00"), 600})
	d.want("by hand, with other minutes", review(made, d.by, false), "")
	var told int
	if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM audit_log WHERE event = 'time_entry.attest'").Row(&told); err != nil || told != 3 {
		t.Errorf("%d words are in the trail, %v", told, err)
	}
}

// What cannot be attested, and what an attestation does not survive.
func TestAttestationRefusals(t *testing.T) {
	const now = "2026-01-15 18:00"
	d := newFixture(t)
	mine := audit.User(7, d.nurse.Email(), "nurse", audit.Origin{})
	attest := func(x *collections.TimeEntry, contact string) string {
		_, err := d.e.AttestTime(d.app, x.Number(), contact, mine, at(now))
		return refused(err)
	}
	message, review := callFor(d.patient(), "2026-01-15 09:00"), callFor(d.patient(), "2026-01-15 10:00")
	message.ContactMethod, review.Category = validate.Of("message"), validate.Of("review")
	d.want("messages", attest(d.logged(d.nurse, message, now), ""), "invalid_state")
	d.want("reading", attest(d.logged(d.nurse, review, now), ""), "invalid_state")
	running, err := d.e.StartTimer(d.app, d.nurse.Id, billing.TimeDraft{PatientID: d.patient(), Category: collections.Interactive}, d.by, at(now))
	if err != nil {
		t.Fatal(err)
	}
	d.want("what runs", attest(running, ""), "invalid_state")

	patient := d.patient(escalated("2026-01-15 11:00", 10))
	entry := d.time(d.times(patient)[0])
	d.want("an escalation's", attest(entry, collections.ByVideo), "")
	if x := d.time(entry.Number()); x.Contact() != collections.ByVideo || x.NeedsAttestation() {
		t.Errorf("by %q, to attest %v", x.Contact(), x.NeedsAttestation())
	}
	for what, body := range map[string]billing.TimeBody{"notes": {Notes: validate.Of("Asked about salt")}, "length": {Seconds: validate.Of(int64(900))}} {
		if _, err := d.e.UpdateTime(d.app, entry.Number(), d.nurse.Id, body, d.by, at(now)); err != nil {
			t.Fatal(err)
		}
		if x := d.time(entry.Number()); x.NeedsAttestation() != (what == "length") {
			t.Errorf("after a change of %s it waits for attestation: %v", what, x.NeedsAttestation())
		}
		d.want("again", attest(entry, ""), "")
	}
}

// resolve resolves a patient's escalation as a user, with given minutes or -1 for the elapsed time, and returns the time in its history.
func (d *fixture) resolve(patient string, user *collections.User, opened, resolved string, minutes int) (said string) {
	d.t.Helper()
	d.planted++
	id := collections.NumberID(int64(5000 + d.planted))
	err := d.app.RunInTransaction(func(tx core.App) error {
		x, err := collections.NewEscalation(tx)
		if err != nil {
			return err
		}
		x.Id = id
		x.SetSubject(patient, "urgent", "", "", "")
		x.Open("nurse@vigil.test", at(opened))
		x.Assign(user.Email(), at(opened))
		if minutes >= 0 {
			x.SetInteractionMinutes(minutes)
		}
		return d.e.LogEscalationTime(tx, x, user.Email(), at(resolved))
	})
	if err != nil {
		d.t.Fatal(err)
	}
	events, err := collections.EventsOfEscalations(d.app, []string{id})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, event := range events {
		said += event.Event + ": " + event.Detail().Reveal()
	}
	return said
}

// countedTimes returns a patient's time entries, as "from-until excluded seconds".
func (d *fixture) countedTimes(patient string) (list []string) {
	d.t.Helper()
	for _, n := range d.times(patient) {
		x := d.time(n)
		list = append(list, fmt.Sprint(x.StartedAt().In(newYork).Format("15:04"), "-", x.EndedAt().In(newYork).Format("15:04"), " ", x.Seconds()/60, " ", x.OverlapSeconds()/60))
	}
	return list
}

// Two escalations that one user resolved with the same minutes count them once, and no minutes precede their opening.
func TestEscalationsShareNoTime(t *testing.T) {
	d := newFixture(t)
	provider, nurse := d.provider(), d.nurse
	one, two := d.patient(), d.patient()
	d.want("the first", d.resolve(one, provider, "2026-01-15 11:00", "2026-01-15 12:10", 25), "")
	d.want("the same patient's second", d.resolve(one, provider, "2026-01-15 11:00", "2026-01-15 12:10", 25),
		"time_logged: Logged 0 minutes of 25 minutes: 25 minutes already logged as 1.")
	d.want("another patient's", d.resolve(two, provider, "2026-01-15 11:00", "2026-01-15 12:10", 25),
		"time_logged: Logged 0 minutes of 25 minutes: 25 minutes already logged as 1.")
	d.want("the nurse's of the same patient", d.resolve(one, nurse, "2026-01-15 11:00", "2026-01-15 12:20", 30),
		"time_logged: Logged 10 minutes of 30 minutes: 20 minutes already logged as 1.")
	d.want("logged", fmt.Sprint(d.countedTimes(one)), "[11:45-12:10 25 0 12:10-12:20 10 20]")
	d.want("logged for the other", fmt.Sprint(d.countedTimes(two)), "[]")

	// no time counts before the opening, and a call in between splits the time
	three := d.patient()
	d.want("opened five minutes ago", d.resolve(three, nurse, "2026-01-15 14:00", "2026-01-15 14:05", 25),
		"time_logged: Logged 5 minutes of 25 minutes: 20 minutes before the escalation was opened.")
	call := callFor(three, "2026-01-15 15:20")
	d.logged(nurse, call, "2026-01-15 18:00")
	d.want("around a call", d.resolve(three, nurse, "2026-01-15 15:00", "2026-01-15 15:40", -1),
		"time_logged: Logged 30 minutes of 40 minutes: 10 minutes already logged as 4.")
	d.want("around a call", fmt.Sprint(d.countedTimes(three)), "[14:00-14:05 5 0 15:00-15:20 20 10 15:20-15:30 10 0 15:30-15:40 10 0]")
	d.want("both ends", d.resolve(three, nurse, "2026-01-15 15:55", "2026-01-15 16:05", 60),
		"time_logged: Logged 10 minutes of 60 minutes: 50 minutes before the escalation was opened.")

	// a running timer covers its elapsed time, at most an hour
	four := d.patient()
	if _, err := d.e.StartTimer(d.app, provider.Id, billing.TimeDraft{PatientID: four, Category: collections.Interactive}, d.by, at("2026-01-15 16:30")); err != nil {
		t.Fatal(err)
	}
	d.want("while a timer runs", d.resolve(four, nurse, "2026-01-15 16:20", "2026-01-15 16:50", -1),
		"time_logged: Logged 10 minutes of 30 minutes: 20 minutes already logged as 8.")
	d.want("after it must have stopped", d.resolve(four, nurse, "2026-01-15 17:20", "2026-01-15 17:40", -1),
		"time_logged: Logged 10 minutes of 20 minutes: 10 minutes already logged as 8.")
}
