package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// books are what was billed of the month that lies behind.
type books struct {
	app      core.App
	money    *billing.Engine
	zone     *time.Location
	now      time.Time
	staff    staff
	ids      []string // of the patients, in order
	opened   time.Time
	calls    []call
	answered int // how many claims have had their answer
}

// call is one that somebody makes.
type call struct {
	by               *collections.User
	patientID, topic string
	from, until      time.Time
}

// BillMonth bills the month of a populated practice as its people would have: calls and their minutes, a run of the billing, reviews, claims to the
// payers, and what came of those. Like [Populate] it goes through the functions that the API uses, each at its own time. A batch of claims is made
// where the practice may send any.
func BillMonth(ctx context.Context, app core.App, money *billing.Engine, zone *time.Location, now time.Time) error {
	b := &books{app: app, money: money, zone: zone, now: now, opened: now.AddDate(0, 0, -historyDays)}
	if err := b.find(); err != nil {
		return err
	}
	b.plan()
	for _, round := range []struct{ run, review, send, answers time.Duration }{
		{-72 * time.Hour, -68 * time.Hour, -67 * time.Hour, -20 * time.Hour},
		{-3 * time.Hour, -2 * time.Hour, -90 * time.Minute, -30 * time.Minute},
	} {
		if err := b.callUntil(now.Add(round.run)); err != nil {
			return err
		}
		if err := b.round(ctx, now.Add(round.run), now.Add(round.review), now.Add(round.send), now.Add(round.answers)); err != nil {
			return err
		}
	}
	return b.callUntil(now)
}

func (b *books) find() (err error) {
	for _, colleague := range Colleagues {
		user, err := collections.FindUserByEmail(b.app, colleague.Email)
		if err != nil {
			return err
		}
		b.staff.take(user)
	}
	err = b.app.DB().NewQuery(`SELECT id FROM patients ORDER BY gateway_patient_id`).Column(&b.ids)
	if err != nil {
		return fmt.Errorf("list the patients: %w", err)
	}
	return nil
}

// plan is when the calls are made: of last month with four patients of five, for twenty minutes and more in two or three calls; of this month with every
// third.
func (b *books) plan() {
	local := b.now.In(b.zone)
	month := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, b.zone)
	last := b.newDiary(b.staff.nurse, latest(month.AddDate(0, -1, 0), b.opened.In(b.zone).AddDate(0, 0, 1)), month, 9)
	this := b.newDiary(b.staff.provider, latest(month, b.opened), local.Add(-10*time.Minute), 13)
	for i, id := range b.ids {
		n := i + 1
		if n%5 != 3 {
			b.talk(last, id, n, 2+(n%3)/2)
		}
		if n%3 == 1 {
			b.talk(this, id, n, 2)
		}
	}
	slices.SortFunc(b.calls, func(x, y call) int { return x.from.Compare(y.from) })
}

// diary hands out somebody's working hours, day by day in turn.
type diary struct {
	of    *collections.User
	days  []time.Time // where on each the next call begins
	until []time.Time
	turn  int
}

const (
	workingHours = 4 * time.Hour
	betweenCalls = 90 * time.Second
)

// newDiary has a stretch of each day between two moments; of a day that has not come to its hour, what there is of it.
func (b *books) newDiary(of *collections.User, from, until time.Time, hour int) *diary {
	d := &diary{of: of}
	for day := from; day.Before(until); day = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, b.zone) {
		begin := latest(time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, b.zone), day)
		end := begin.Add(workingHours)
		if end.After(until) {
			end, begin = until, latest(day, until.Add(-workingHours))
		}
		d.days, d.until = append(d.days, begin), append(d.until, end)
	}
	return d
}

// next is when a call of that length can begin; ok is false when there is no room left.
func (d *diary) next(length time.Duration) (at time.Time, ok bool) {
	for range d.days {
		i := d.turn % len(d.days)
		d.turn++
		if at = d.days[i]; !at.Add(length).After(d.until[i]) {
			d.days[i] = at.Add(length + betweenCalls)
			return at, true
		}
	}
	return at, false
}

var topics = []string{
	"Went through the week's values and how the cuff is worn.", "Asked about dizziness and swelling; medication taken as agreed.",
	"Salt, fluids and weighing every morning.", "Explained which values to call about.",
}

// talk plans some calls with a patient, of ten to twenty minutes. What does not fit into the month is left out.
func (b *books) talk(d *diary, patientID string, n, calls int) {
	for k := range calls {
		length := time.Duration(10*60+(n*37+k*211)%540) * time.Second
		if at, ok := d.next(length); ok {
			b.calls = append(b.calls, call{d.of, patientID, topics[(n+k)%len(topics)], at, at.Add(length).UTC()})
		}
	}
}

// callUntil logs the calls that were over by then, and that they were live contact.
func (b *books) callUntil(then time.Time) error {
	for len(b.calls) > 0 && b.calls[0].until.Before(then) {
		made := b.calls[0]
		b.calls = b.calls[1:]
		by := actor(made.by)
		checks := validate.NewChecks()
		draft := billing.TimeBody{
			PatientID: validate.Of(made.patientID), Category: validate.Of(collections.Interactive), Activity: validate.Of("phone_call"), Notes: validate.Of(made.topic),
			StartedAt: validate.Of(made.from.Format(time.RFC3339)), EndedAt: validate.Of(made.until.Format(time.RFC3339)),
		}.Read(checks, made.until)
		if err := checks.Err(); err != nil {
			return err
		}
		entry, err := b.money.LogTime(b.app, made.by.Id, draft, by, made.until)
		if err != nil {
			return fmt.Errorf("log a call: %w", err)
		}
		if _, err := b.money.AttestTime(b.app, entry.Number(), "", by, made.until.Add(time.Minute)); err != nil {
			return fmt.Errorf("attest a call: %w", err)
		}
	}
	return nil
}

// round is a run of the billing and what follows it. What is made of every ninth patient waits for its review, and what is reviewed of every
// eleventh waits to be sent: all that a patient has stands on one claim.
func (b *books) round(ctx context.Context, run, review, send, answers time.Time) error {
	by := actor(b.staff.biller)
	made, err := b.money.Run(ctx, b.app, billing.AllJobs, by, func() time.Time { return run })
	if err != nil {
		return fmt.Errorf("run the billing: %w", err)
	}
	var covered, alone []string
	for _, created := range made.Created {
		n := slices.Index(b.ids, created.PatientID) + 1
		if n%9 == 4 {
			continue
		}
		entry, err := b.money.ApplyTransition(b.app, created.ID, b.money.Review(by, "", "", true, review), by, review)
		if refused := new(fault.Error); errors.As(err, &refused) { // the facts do not bear it out: it waits for a person
			continue
		}
		switch {
		case err != nil:
			return fmt.Errorf("review: %w", err)
		case n%11 == 7:
		case entry.PayerID() == "":
			alone = append(alone, entry.Id)
		default:
			covered = append(covered, entry.Id)
		}
	}
	if err := b.send(covered, alone, send); err != nil {
		return err
	}
	return b.answerClaims(append(covered, alone...), answers)
}

// send submits claims: to payers as a batch where the practice has a clearinghouse, one by one elsewhere.
func (b *books) send(covered, alone []string, at time.Time) error {
	by := actor(b.staff.biller)
	if b.money.Claims.Submitter.ID != "" && len(covered) > 0 {
		if _, err := (clearinghouse.Engine{Billing: b.money}).SendBatch(b.app, covered, by, at); err != nil {
			return fmt.Errorf("send the claims: %w", err)
		}
		covered = nil
	}
	for _, id := range append(alone, covered...) {
		if _, err := b.money.ApplyTransition(b.app, id, b.money.Submit("", at, at), by, at); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
	return nil
}

// answerClaims is what the payers answer: of ten claims six are paid but for the patient's fifth, one is paid in part, one is denied, and two are open.
func (b *books) answerClaims(ids []string, at time.Time) error {
	by := actor(b.staff.biller)
	for _, id := range ids {
		entry, err := collections.FindBillingEntry(b.app, id)
		if err != nil {
			return err
		}
		b.answered++
		var moves []billing.Transition
		switch place := b.answered % 10; {
		case place == 3 || place == 8: // no answer yet
		case place == 6:
			moves = []billing.Transition{b.money.Deny("CO-16", "Claim lacks information needed for adjudication.", b.money.Day(at), at)}
		case entry.PayerID() == "":
			moves = []billing.Transition{b.pay(entry.ChargeCents(), collections.PatientPays, id, at)}
		case place == 9:
			moves = []billing.Transition{b.pay(entry.AmountCents()/2, collections.PrimaryPayer, id, at)}
		default:
			share := entry.AmountCents() / 5
			moves = []billing.Transition{b.pay(entry.AmountCents()-share, collections.PrimaryPayer, id, at)}
			if agreed := entry.ChargeCents() - entry.AmountCents(); agreed > 0 {
				moves = append(moves, b.money.Adjust(billing.AdjustmentDraft{Amount: billing.Cents(agreed), Group: "CO", CARC: "45", Reason: "Contractual"}, by, at))
			}
			moves = append(moves, b.money.Adjust(billing.AdjustmentDraft{Amount: billing.Cents(share), Group: billing.GroupPatient, CARC: "2", Reason: "Coinsurance"}, by, at))
		}
		for _, move := range moves {
			if _, err := b.money.ApplyTransition(b.app, id, move, by, at); err != nil {
				return fmt.Errorf("answer claims: %s: %w", move.Name, err)
			}
		}
	}
	return nil
}

func (b *books) pay(cents int64, payer, id string, at time.Time) billing.Transition {
	return b.money.Pay(billing.PaymentDraft{
		Amount: billing.Cents(cents), Date: b.money.Day(at), Reference: "EFT-" + at.Format("20060102") + "-" + id[len(id)-4:], Payer: payer,
	}, actor(b.staff.biller), at)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
