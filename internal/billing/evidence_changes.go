package billing

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

const (
	// repayDays is how long an overpayment may be kept after it is identified. Source: docs/decisions/billing.md, "Evidence changed after submission".
	repayDays = 60
	// lookBackYears is how far back overpayments must be reported. Source: docs/decisions/billing.md, "Evidence changed after submission".
	lookBackYears = 6
)

// sentStates are the states of claims that a payer received and that are not being undone.
var sentStates = []string{Submitted, Appealed, Paid}

// evidenceReasons are the reasons that can change after submission: evidence, not who may be billed or by which provider. A late sixteenth day or
// twentieth minute makes a sent 99445 or 99470 the wrong code.
var evidenceReasons = []string{
	NoDeviceData, DaysBelowMinimum, MinutesBelowMinimum, NotInteractive, OverlapTime, MissingPrimary, MissingConsent, NotActive, DaysAboveMaximum,
	MinutesAboveMaximum,
}

// Recheck recounts a patient's submitted entries with a changed day in their period, in the transaction of the change. If the facts no
// longer support an entry, it is flagged and billing is notified; if they support it again, the flag is removed. A zero since means all entries.
func (e *Engine) Recheck(tx core.App, patientID string, since, now time.Time) error {
	from := "1900-01-01"
	if !since.IsZero() {
		from = AddDays(e.Day(since), -1) // the patient's time zone may differ
	}
	list, err := collections.ClaimedEntriesOf(tx, patientID, sentStates, from, "9999-12-31")
	if err != nil || len(list) == 0 {
		return err
	}
	reasons, err := e.evidenceFailures(tx, list)
	if err != nil {
		return err
	}
	for i, x := range list {
		if x.Flagged != (len(reasons[i]) > 0) {
			if err := e.setEvidenceChanged(tx, x.ID, reasons[i], now); err != nil {
				return err
			}
		}
	}
	return nil
}

// evidenceFailures returns, for each entry, the evidence reasons against it.
func (e *Engine) evidenceFailures(app core.App, list []collections.ClaimedEntry) ([][]string, error) {
	var ids []string
	claims, since := make([]claimedEntry, len(list)), "9999-12-31"
	for i, x := range list {
		ids, since = append(ids, x.Patient), min(since, x.PeriodStart)
		claims[i] = claimedEntry{
			id: x.ID, patient: x.Patient, payer: x.Payer, status: x.Status, code: x.CPTCode, service: x.ServiceDate, source: x.Source, period: Span{x.PeriodStart, x.PeriodEnd},
			minutes: x.Minutes, units: x.Units,
		}
	}
	slices.Sort(ids)
	patients, err := e.loadFacts(app, slices.Compact(ids), since)
	if err != nil {
		return nil, err
	}
	for i, x := range list {
		if f := patients[x.Patient]; f != nil {
			claims[i].rule = e.ruleOfEvidence(x.Evidence, monthOf(x.PeriodStart), f.minutesRules[x.Payer])
		}
	}
	found, err := e.countFacts(app, patients, claims)
	if err != nil {
		return nil, err
	}
	reasons := make([][]string, len(list))
	for i, x := range claims {
		if f := patients[x.patient]; f != nil {
			f.deleted = false // hiding a patient does not change what was furnished
			reasons[i] = slices.DeleteFunc(e.blockingReasons(f, x, found[i]), func(r string) bool { return !slices.Contains(evidenceReasons, r) })
		}
	}
	return reasons, nil
}

// setEvidenceChanged flags an entry with the reasons and the day by which a payment must be returned, or clears the flag if there are no
// reasons.
func (e *Engine) setEvidenceChanged(tx core.App, entryID string, reasons []string, now time.Time) error {
	entry, err := collections.FindBillingEntry(tx, entryID)
	if err != nil {
		return err
	}
	warnings := slices.DeleteFunc(entry.Warnings(), func(w string) bool { return w == EvidenceChanged || slices.Contains(evidenceReasons, w) })
	since, repayBy, change := time.Time{}, "", audit.Change{Old: EvidenceChanged}
	if len(reasons) > 0 {
		warnings = append(append(warnings, EvidenceChanged), reasons...)
		since, repayBy, change = now, AddDays(e.Day(now), repayDays), audit.Change{New: strings.Join(reasons, ", ")}
	}
	if err := collections.SetEvidenceChanged(tx, entryID, warnings, since, repayBy, now); err != nil {
		return err
	}
	err = audit.Append(tx, audit.Entry{
		Event: audit.BillingUpdate, Actor: audit.System(), ResourceType: audit.ResourceBillingEntry, ResourceID: entryID, PatientID: entry.PatientID(),
		Changes: audit.Changes{"evidence": change, "repay_by": {Old: entry.RepayBy(), New: repayBy}},
	}, now)
	if err != nil || len(reasons) == 0 {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EvidenceChanged, Severity: "warning", PatientID: entry.PatientID(), EntryID: entryID,
		Body: "The facts no longer support claim " + entry.ClaimID() + ": " + strings.Join(reasons, ", ") + ". Refund its payments by " + repayBy + ".",
		Key:  "evidence:" + entryID + ":" + collections.FormatInstant(now),
	}, now)
}

// RecheckAll rechecks all entries sent to a payer, including those from before recounts. It finds changes that no transaction rechecked, since a
// fact can change for reasons outside billing.
func (e *Engine) RecheckAll(ctx context.Context, app core.App, now time.Time) (seen, marked int, err error) {
	since := AddDays(e.Day(now), -lookBackYears*366)
	checking := async.ThrottleWhile(e.ReadingsPending)
	for after := ""; ; {
		if err := checking.Rest(ctx); err != nil {
			return seen, marked, err
		}
		list, err := collections.ClaimedEntriesAfter(app, sentStates, since, after, chunkSize)
		if err != nil || len(list) == 0 {
			return seen, marked, err
		}
		reasons, err := e.evidenceFailures(app, list)
		if err != nil {
			return seen, marked, err
		}
		seen, after = seen+len(list), list[len(list)-1].ID
		for i, x := range list {
			if x.Flagged == (len(reasons[i]) > 0) {
				continue
			}
			marked++
			err := app.RunInTransaction(func(tx core.App) error { return e.Recheck(tx, x.Patient, time.Time{}, now) })
			if err != nil {
				return seen, marked, err
			}
		}
	}
}
