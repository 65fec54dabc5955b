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

// demoBilling bills the past month of the demo practice.
type demoBilling struct {
	app      core.App
	billing  *billing.Engine
	zone     *time.Location
	now      time.Time
	staff    staff
	ids      []string // of the patients, in order
	openedAt time.Time
	calls    []plannedCall
	answered int // number of claims with an answer
}

// plannedCall is a call to be logged.
type plannedCall struct {
	by               *collections.User
	patientID, topic string
	from, until      time.Time
}

// BillMonth bills the month of a populated practice: calls and their minutes, a billing run, reviews, claims, and the payers' answers. Like
// [Populate] it uses the functions of the API, each at its own time. Claims are sent as a batch if the practice may send one.
func BillMonth(ctx context.Context, app core.App, money *billing.Engine, zone *time.Location, now time.Time) error {
	b := &demoBilling{app: app, billing: money, zone: zone, now: now, openedAt: now.AddDate(0, 0, -historyDays)}
	if err := b.loadPractice(); err != nil {
		return err
	}
	b.planCalls()
	for _, round := range []struct{ run, review, send, answers time.Duration }{
		{-72 * time.Hour, -68 * time.Hour, -67 * time.Hour, -20 * time.Hour},
		{-3 * time.Hour, -2 * time.Hour, -90 * time.Minute, -30 * time.Minute},
	} {
		if err := b.logCallsUntil(now.Add(round.run)); err != nil {
			return err
		}
		if err := b.runBillingRound(ctx, now.Add(round.run), now.Add(round.review), now.Add(round.send), now.Add(round.answers)); err != nil {
			return err
		}
	}
	return b.logCallsUntil(now)
}

func (b *demoBilling) loadPractice() (err error) {
	for _, colleague := range DemoUsers {
		user, err := collections.FindUserByEmail(b.app, colleague.Email)
		if err != nil {
			return err
		}
		b.staff.assign(user)
	}
	err = b.app.DB().NewQuery(`SELECT id FROM patients ORDER BY gateway_patient_id`).Column(&b.ids)
	if err != nil {
		return fmt.Errorf("list the patients: %w", err)
	}
	return nil
}

// planCalls plans the calls: last month with four of five patients, at least twenty minutes in two or three calls; this month with every
// third.
func (b *demoBilling) planCalls() {
	local := b.now.In(b.zone)
	month := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, b.zone)
	last := b.newCallSchedule(b.staff.nurse, latest(month.AddDate(0, -1, 0), b.openedAt.In(b.zone).AddDate(0, 0, 1)), month, 9)
	this := b.newCallSchedule(b.staff.provider, latest(month, b.openedAt), local.Add(-10*time.Minute), 13)
	for i, id := range b.ids {
		n := i + 1
		if n%5 != 3 {
			b.scheduleCalls(last, id, n, 2+(n%3)/2)
		}
		if n%3 == 1 {
			b.scheduleCalls(this, id, n, 2)
		}
	}
	slices.SortFunc(b.calls, func(x, y plannedCall) int { return x.from.Compare(y.from) })
}

// callSchedule assigns a user's working hours, in turn by day.
type callSchedule struct {
	user      *collections.User
	nextStart []time.Time // start of the next call of each day
	dayEnd    []time.Time
	turn      int
}

const (
	workingHours = 4 * time.Hour
	betweenCalls = 90 * time.Second
)

// newCallSchedule has working hours of each day between two times; of a day without its regular hours, the last hours before the end.
func (b *demoBilling) newCallSchedule(of *collections.User, from, until time.Time, hour int) *callSchedule {
	d := &callSchedule{user: of}
	for day := from; day.Before(until); day = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, b.zone) {
		begin := latest(time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, b.zone), day)
		end := begin.Add(workingHours)
		if end.After(until) {
			end, begin = until, latest(day, until.Add(-workingHours))
		}
		d.nextStart, d.dayEnd = append(d.nextStart, begin), append(d.dayEnd, end)
	}
	return d
}

// next returns when a call of that length can start; ok is false if there is no time left.
func (s *callSchedule) next(length time.Duration) (at time.Time, ok bool) {
	for range s.nextStart {
		i := s.turn % len(s.nextStart)
		s.turn++
		if at = s.nextStart[i]; !at.Add(length).After(s.dayEnd[i]) {
			s.nextStart[i] = at.Add(length + betweenCalls)
			return at, true
		}
	}
	return at, false
}

var topics = []string{
	"Went through the week's values and how the cuff is worn.", "Reviewed dizziness and swelling; medication taken as agreed.",
	"Salt, fluids and weighing every morning.", "Explained which values to call about.",
}

// scheduleCalls plans calls of ten to twenty minutes with a patient. Calls that do not fit into the month are dropped.
func (b *demoBilling) scheduleCalls(d *callSchedule, patientID string, n, calls int) {
	for k := range calls {
		length := time.Duration(10*60+(n*37+k*211)%540) * time.Second
		if at, ok := d.next(length); ok {
			b.calls = append(b.calls, plannedCall{d.user, patientID, topics[(n+k)%len(topics)], at, at.Add(length).UTC()})
		}
	}
}

// logCallsUntil logs the calls that ended before a time, and attests live contact.
func (b *demoBilling) logCallsUntil(until time.Time) error {
	for len(b.calls) > 0 && b.calls[0].until.Before(until) {
		call := b.calls[0]
		b.calls = b.calls[1:]
		by := actorOf(call.by)
		checks := validate.NewChecks()
		draft := billing.TimeBody{
			PatientID: validate.Of(call.patientID), Category: validate.Of(collections.Interactive), Activity: validate.Of("phone_call"), Notes: validate.Of(call.topic),
			StartedAt: validate.Of(call.from.Format(time.RFC3339)), EndedAt: validate.Of(call.until.Format(time.RFC3339)),
		}.Read(checks, call.until)
		if err := checks.Err(); err != nil {
			return err
		}
		entry, err := b.billing.LogTime(b.app, call.by.Id, draft, by, call.until)
		if err != nil {
			return fmt.Errorf("log a call: %w", err)
		}
		if _, err := b.billing.AttestTime(b.app, entry.Number(), "", by, call.until.Add(time.Minute)); err != nil {
			return fmt.Errorf("attest a call: %w", err)
		}
	}
	return nil
}

// runBillingRound runs the billing, reviews, submits and answers. Entries of every ninth patient stay unreviewed, and those of every
// eleventh unsent: all entries of a patient are on one claim.
func (b *demoBilling) runBillingRound(ctx context.Context, run, review, send, answers time.Time) error {
	by := actorOf(b.staff.biller)
	result, err := b.billing.Run(ctx, b.app, billing.AllJobs, by, func() time.Time { return run })
	if err != nil {
		return fmt.Errorf("run the billing: %w", err)
	}
	var covered, alone []string
	for _, created := range result.Created {
		n := slices.Index(b.ids, created.PatientID) + 1
		if n%9 == 4 {
			continue
		}
		entry, err := b.billing.ApplyTransition(b.app, created.ID, b.billing.Review(by, "", "", true, review), by, review)
		if refused := new(fault.Error); errors.As(err, &refused) { // the facts do not support it: stays for a person
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
	if err := b.submitClaims(covered, alone, send); err != nil {
		return err
	}
	return b.answerClaims(append(covered, alone...), answers)
}

// submitClaims sends claims: to payers as a batch if the practice has a clearinghouse, otherwise one by one.
func (b *demoBilling) submitClaims(covered, alone []string, at time.Time) error {
	by := actorOf(b.staff.biller)
	if b.billing.Claims.Submitter.ID != "" && len(covered) > 0 {
		if _, err := (clearinghouse.Engine{Billing: b.billing}).SendBatch(b.app, covered, by, at); err != nil {
			return fmt.Errorf("send the claims: %w", err)
		}
		covered = nil
	}
	for _, id := range append(alone, covered...) {
		if _, err := b.billing.ApplyTransition(b.app, id, b.billing.Submit("", at, at), by, at); err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
	return nil
}

// answerClaims records the payers' answers: of ten claims six are paid except the patient's fifth, one is paid in part, one is denied, and
// two stay open.
func (b *demoBilling) answerClaims(ids []string, at time.Time) error {
	by := actorOf(b.staff.biller)
	for _, id := range ids {
		entry, err := collections.FindBillingEntry(b.app, id)
		if err != nil {
			return err
		}
		b.answered++
		var moves []billing.Transition
		switch position := b.answered % 10; {
		case position == 3 || position == 8: // no answer yet
		case position == 6:
			moves = []billing.Transition{b.billing.Deny("CO-16", "Claim lacks information needed for adjudication.", b.billing.Day(at), at)}
		case entry.PayerID() == "":
			moves = []billing.Transition{b.pay(entry.ChargeCents(), collections.PatientPays, id, at)}
		case position == 9:
			moves = []billing.Transition{b.pay(entry.AmountCents()/2, collections.PrimaryPayer, id, at)}
		default:
			share := entry.AmountCents() / 5
			moves = []billing.Transition{b.pay(entry.AmountCents()-share, collections.PrimaryPayer, id, at)}
			if agreed := entry.ChargeCents() - entry.AmountCents(); agreed > 0 {
				moves = append(moves, b.billing.Adjust(billing.AdjustmentDraft{Amount: billing.Cents(agreed), Group: "CO", CARC: "45", Reason: "Contractual"}, by, at))
			}
			moves = append(moves, b.billing.Adjust(billing.AdjustmentDraft{Amount: billing.Cents(share), Group: billing.GroupPatient, CARC: "2", Reason: "Coinsurance"}, by, at))
		}
		for _, move := range moves {
			if _, err := b.billing.ApplyTransition(b.app, id, move, by, at); err != nil {
				return fmt.Errorf("answer claims: %s: %w", move.Name, err)
			}
		}
	}
	return nil
}

func (b *demoBilling) pay(cents int64, payer, id string, at time.Time) billing.Transition {
	return b.billing.Pay(billing.PaymentDraft{
		Amount: billing.Cents(cents), Date: b.billing.Day(at), Reference: "EFT-" + at.Format("20060102") + "-" + id[len(id)-4:], Payer: payer,
	}, actorOf(b.staff.biller), at)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
