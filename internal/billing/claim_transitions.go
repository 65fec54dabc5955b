package billing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Transition is a change of a claim's state with the columns it writes. Source: docs/decisions/billing.md, "Claim state machine".
type Transition struct {
	Name   string
	From   []string
	To     string
	event  audit.Event
	check  func(tx core.App, entry *collections.BillingEntry) error
	set    map[string]any
	detail string
	after  func(tx core.App, entry *collections.BillingEntry) error
	target func(entry *collections.BillingEntry) string // computes the state from the amounts; nil for To
}

// ApplyTransition applies a transition in a transaction with its audit entry. It returns an invalid_transition fault if the claim's state is not
// in From.
func (e *Engine) ApplyTransition(app core.App, entryID string, m Transition, by audit.Actor, now time.Time) (entry *collections.BillingEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if entry, err = collections.FindBillingEntry(tx, entryID); err != nil {
			return fault.OrMissing(err)
		}
		from := entry.Status()
		if !slices.Contains(m.From, from) {
			return fault.State("invalid_transition", fmt.Sprintf("A claim that is %s cannot be changed this way.", strings.ReplaceAll(from, "_", " ")))
		}
		before := amountsOf(entry)
		if m.check != nil {
			if err := m.check(tx, entry); err != nil {
				return err
			}
		}
		to := m.To
		if m.target != nil {
			to = m.target(entry)
		}
		if err := reopenDenied(tx, entry, to, by, now); err != nil {
			return err
		}
		err = m.store(tx, entry, from, to, before, by, now, func(e audit.Entry, now time.Time) error { return audit.Append(tx, e, now) })
		if err == nil && m.after != nil {
			err = m.after(tx, entry)
		}
		if err == nil && !(existingEntry{Status: to}).isActive() { // add-on codes may depend on it
			err = e.Recheck(tx, entry.PatientID(), ParseDay(entry.PeriodStart()), now)
		}
		return err
	})
	return entry, err
}

// store writes the changed entry and its audit entry.
func (m Transition) store(
	tx core.App, entry *collections.BillingEntry, from, to string, before claimAmounts, by audit.Actor, now time.Time, trace func(audit.Entry, time.Time) error,
) error {
	for column, value := range m.set {
		entry.Set(column, value)
	}
	entry.Set(collections.EntryStatus, to)
	entry.Set(collections.ColumnUpdatedAt, collections.Instant(now))
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store billing entry: %w", err)
	}
	changes := audit.Changes{"lifecycle_status": {Old: from, New: to}}
	before.addChanges(changes, amountsOf(entry))
	if m.detail != "" {
		changes["detail"] = audit.Change{New: m.detail}
	}
	return trace(audit.Entry{
		Event: m.event, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id, PatientID: entry.PatientID(), Changes: changes,
	}, now)
}

// reopenDenied reverses the adjustments of a denied claim that is appealed or resubmitted: all of its charge is open again.
func reopenDenied(tx core.App, entry *collections.BillingEntry, to string, by audit.Actor, now time.Time) error {
	if entry.Status() != Denied || !slices.Contains([]string{Submitted, Appealed}, to) {
		return nil
	}
	return reverseAdjustments(tx, entry, by, now)
}
