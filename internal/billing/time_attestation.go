package billing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// NotAuthor is the error code for attesting another user's minutes. Source: docs/decisions/billing.md, "Attested minutes".
const NotAuthor = "not_author"

// AttestBody is the request body of an attestation that time was contact with the patient.
type AttestBody struct {
	ContactMethod validate.String `json:"contact_method"`
}

// Read validates the body: only live contact can be attested.
func (b AttestBody) Read(c *validate.Checks) string {
	return c.Text("contact_method", b.ContactMethod, validate.Optional(0).OneOf(contactMethods[:3]...))
}

// AttestTime records that the author of a time entry, or a clinical manager, confirms live contact, with the contact method if given. Entries
// that only lacked it can then be reviewed. A second attestation changes nothing.
func (e *Engine) AttestTime(app core.App, number int64, contact string, by audit.Actor, now time.Time) (entry *collections.TimeEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if entry, err = collections.FindTimeEntry(tx, number); err != nil {
			return fault.OrMissing(err)
		}
		own, err := canAttest(tx, entry.UserRecordID(), by)
		switch {
		case err != nil:
			return err
		case !own:
			return notAuthor("Only the author of the time entry, or a clinical manager, can attest it.")
		case entry.Running():
			return fault.State("invalid_state", "Stop the timer first.")
		case entry.Category() != collections.Interactive || entry.Contact() == collections.ByMessage:
			return fault.State("invalid_state", "Only time in live contact with the patient can be attested.")
		case !entry.AttestedAt().IsZero():
			return nil
		}
		if contact != "" {
			entry.SetContact(contact)
		}
		entry.Attest(by.Email, now)
		entry.SetUpdatedAt(now)
		if err := tx.Save(entry); err != nil {
			return fmt.Errorf("store attested time: %w", err)
		}
		if err := audit.Append(tx, timeAudit(audit.TimeEntryAttest, entry, by), now); err != nil {
			return err
		}
		return e.clearAttestWarnings(tx, entry.PatientID(), by, now)
	})
	return entry, err
}

// canAttest reports whether an actor may attest a user's minutes.
func canAttest(tx core.App, userID string, by audit.Actor) (bool, error) {
	if by.Role == string(authz.ClinicalManager) {
		return true, nil
	}
	user, err := collections.FindUser(tx, userID)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && strings.EqualFold(user.Email(), by.Email), err
}

func notAuthor(detail string) *fault.Error { return fault.New(fault.Forbidden, NotAuthor, detail) }

// clearAttestWarnings removes the warning from those of a patient's entries with all minutes attested.
func (e *Engine) clearAttestWarnings(tx core.App, patientID string, by audit.Actor, now time.Time) error {
	waiting, _, err := collections.PageOfBillingEntries(tx, collections.EntryFilter{PatientID: patientID, States: []string{PendingReview}},
		[]string{"id"}, 0, maxPendingEntries)
	if err != nil {
		return err
	}
	for _, entry := range waiting {
		i := slices.Index(entry.Warnings(), AttestInteraction)
		if i < 0 {
			continue
		}
		open, err := e.unattestedTimes(tx, entry)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			continue
		}
		entry.Set(collections.EntryWarnings, slices.Delete(entry.Warnings(), i, i+1))
		entry.Set(collections.EntryAttested, true)
		entry.Set(collections.ColumnUpdatedAt, collections.FormatInstant(now))
		if err := tx.Save(entry); err != nil {
			return fmt.Errorf("store billing entry: %w", err)
		}
		err = audit.Append(tx, audit.Entry{
			Event: audit.BillingUpdate, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id, PatientID: patientID,
			Changes: audit.Changes{"attested": {Old: false, New: true}},
		}, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// maxPendingEntries is more than one patient ever has.
const maxPendingEntries = 1000

// unattestedTimes returns the unattested time behind an entry: the time entries that it billed; for a manual entry, those of its month if the
// attested minutes do not suffice.
func (e *Engine) unattestedTimes(tx core.App, entry *collections.BillingEntry) ([]collections.UnattestedTime, error) {
	behind := evidenceTimeIDs(entry)
	if entry.Source() == SourceManual && baseRule(entry.CPTCode(), entry.ServiceDate()).Category == collections.Interactive {
		month := monthOf(entry.PeriodStart())
		payers, err := collections.MinutesRuleOfPayer(tx, entry.PayerID())
		if err != nil {
			return nil, err
		}
		times, err := e.loggedTimeByRule(tx, []string{entry.PatientID()}, month, e.ruleOfEvidence(entry.Evidence(), month, payers))
		if err != nil {
			return nil, err
		}
		patients, err := e.loadFacts(tx, []string{entry.PatientID()}, "9999-12-31") // without entries
		if err != nil {
			return nil, err
		}
		counting := times[entry.PatientID()]
		if f := patients[entry.PatientID()]; f != nil {
			counting = e.dropUncountedTime(f, counting, month)
		}
		for _, s := range counting {
			behind = append(behind, s.ID)
		}
		open, err := collections.UnattestedTimes(tx, entry.PatientID(), entry.Id, behind)
		attested := slices.DeleteFunc(counting, func(s LoggedTime) bool {
			return slices.ContainsFunc(open, func(o collections.UnattestedTime) bool { return o.ID == s.ID })
		})
		if err != nil || CountedSeconds(attested)/60 >= neededMinutes(entry.CPTCode(), entry.ServiceDate(), entry.Units()) {
			return nil, err
		}
		return open, nil
	}
	return collections.UnattestedTimes(tx, entry.PatientID(), entry.Id, behind)
}

// evidenceTimeIDs returns the time entries that an entry billed.
func evidenceTimeIDs(entry *collections.BillingEntry) (ids []string) {
	var stored TimeEvidence
	if json.Unmarshal([]byte(entry.Evidence()), &stored) == nil {
		for _, n := range stored.TimeEntries {
			ids = append(ids, collections.NumberID(n))
		}
	}
	return ids
}

// attestInReview attests, in a review, the unattested minutes of the reviewer; it rejects the review if they are another user's. waits means
// that the reviewer has not attested them.
func (e *Engine) attestInReview(tx core.App, entry *collections.BillingEntry, by audit.Actor, attested bool, now time.Time) (waits bool, err error) {
	open, err := e.unattestedTimes(tx, entry)
	if err != nil {
		return false, err
	}
	for _, t := range open {
		own, err := canAttest(tx, t.User, by)
		if err != nil {
			return false, err
		}
		if !own {
			return false, notAuthor(fmt.Sprintf("Time entry %d must first be attested by its author or a clinical manager.", collections.Number(t.ID))).
				With("time_entry_id", collections.Number(t.ID))
		}
	}
	if len(open) > 0 && !attested {
		return true, nil
	}
	for _, t := range open {
		spent, err := collections.FindTimeEntry(tx, collections.Number(t.ID))
		if err != nil {
			return false, err
		}
		spent.Attest(by.Email, now)
		spent.SetUpdatedAt(now)
		if err := tx.Save(spent); err != nil {
			return false, fmt.Errorf("store attested time: %w", err)
		}
		if err := audit.Append(tx, timeAudit(audit.TimeEntryAttest, spent, by), now); err != nil {
			return false, err
		}
	}
	return false, nil
}
