package clearinghouse

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/x12"
)

// MaxLines is how many entries one batch contains at most.
const MaxLines = 1000

// LineErrors is the errors of one line of a batch.
type LineErrors struct {
	EntryID string         `json:"entry_id"`
	Errors  []claims.Issue `json:"errors"`
}

// Findings of batches, besides those of preflight.
const (
	WrongState = "invalid_transition"
	NotForEDI  = claims.SelfPay
)

// SendBatch creates a batch of reviewed entries, which become submitted, and of submitted entries
// and requested voids that are in no batch yet. It is all or nothing: an error in any line is an
// invalid_state fault with the errors of each line. Source: docs/decisions/claims.md, "Batches".
func (h Engine) SendBatch(app core.App, entryIDs []string, by audit.Actor, now time.Time) (row collections.BatchRow, err error) {
	head, _, err := collections.AuditHead(app) // before anything else is read
	if err != nil {
		return row, err
	}
	entries, err := collections.BillingEntriesByID(app, entryIDs)
	if err != nil {
		return row, err
	}
	plan, err := h.plan(app, entryIDs, entries, now)
	if err != nil {
		return row, err
	}
	return h.sendPlan(app, plan, head, by, now)
}

// sendPlan stores the planned claims as a batch.
func (h Engine) sendPlan(app core.App, plan batchPlan, head string, by audit.Actor, now time.Time) (row collections.BatchRow, err error) {
	var number int64
	err = app.RunInTransaction(func(tx core.App) error { // an unused number is skipped
		number, err = nextInterchangeNumber(tx, now)
		return err
	})
	if err != nil {
		return row, err
	}
	plan.assignNumbers(number)
	file, err := plan.file(h, number, now)
	if err != nil {
		return row, err
	}
	decided, err := h.precheckLines(app, plan, number, now)
	if err != nil {
		return row, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		if err := h.submit(tx, plan, decided, head, number, by, now); err != nil {
			return err
		}
		if row, err = h.store(tx, plan, number, file, by, now); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.BillingExport, Actor: by, ResourceType: audit.ResourceClaimBatch, ResourceID: row.ID,
			Changes: audit.Changes{"interchange_control_number": {New: row.Number}, "claims": {New: row.Claims}, "lines": {New: row.Lines}},
		}, now)
	})
	return row, err
}

// epoch is the start of interchange numbering.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// nextInterchangeNumber returns the next interchange number: one more than the last, and at least the minutes since the epoch, so that a
// practice restored from a backup does not reuse numbers. Nine digits suffice for nineteen centuries.
func nextInterchangeNumber(tx core.App, now time.Time) (int64, error) {
	const sequence = "claim-interchanges"
	last, err := collections.LastValue(tx, sequence)
	if err != nil {
		return 0, err
	}
	number := max(last+1, int64(now.Sub(epoch)/time.Minute))
	return number, collections.SetLastValue(tx, sequence, number)
}

// batchClaim is a claim of a batch.
type batchClaim struct {
	control      string
	frequency    string
	payerControl string // the payer's control number of the claim that is replaced or voided
	chain        string // of the claims that it replaces or voids; "" for none on record
	lines        []batchLine
}

// serviceLines returns the lines of the file: a replacement omits voided lines.
func (c *batchClaim) serviceLines() []batchLine {
	if c.frequency != claims.Replacement {
		return c.lines
	}
	return slices.DeleteFunc(slices.Clone(c.lines), func(l batchLine) bool { return l.Frequency == claims.VoidOfClaim })
}

// form returns the claim as an 837P claim.
func (c *batchClaim) form() x12.Claim {
	sentLines := c.serviceLines()
	lines := make([]claims.FormLine, len(sentLines))
	for i, l := range sentLines {
		lines[i] = claims.FormLine{Claim: l.Claim, Control: l.control}
	}
	return claims.Build837P(c.control, c.frequency, c.payerControl, lines)
}

// batchLine is an entry as a service line. A carried line is on a replacement only because it was on the replaced claim.
type batchLine struct {
	claims.Claim
	entry       *collections.BillingEntry
	isCarried   bool
	isResend    bool // it was sent as a test before
	isSubmitted bool // the batch submits it
	control     string
}

// needsSubmission reports whether the batch submits a line; other lines are sent in their current state.
func (l batchLine) needsSubmission() bool {
	return l.PrimaryDecision == nil && (l.entry.Status() == billing.Reviewed || l.isResend && l.Frequency != claims.VoidOfClaim)
}

// batchPlan is the claims of a batch, all to the first payers or all to the second.
type batchPlan struct {
	claims   []*batchClaim
	sequence string // "", or S
}

// assignNumbers assigns control numbers to claims and lines: the interchange number and the position in it.
func (p batchPlan) assignNumbers(interchange int64) {
	for i, c := range p.claims {
		c.control = fmt.Sprintf("V%09dC%05d", interchange, i+1)
		for n := range c.lines {
			c.lines[n].control = fmt.Sprintf("%sL%02d", c.control, n+1)
		}
	}
}

// file returns the batch as an 837P.
func (p batchPlan) file(h Engine, number int64, now time.Time) ([]byte, error) {
	batch := h.Billing.Claims.Envelope(int(number), fmt.Sprintf("%09d", number), now.In(h.Billing.Zone))
	for _, c := range p.claims {
		batch.Claims = append(batch.Claims, c.form())
	}
	file, err := batch.Bytes()
	if err != nil {
		return nil, p.unrepresentableFault(err)
	}
	return file, nil
}

// store stores the batch and its lines.
func (h Engine) store(tx core.App, p batchPlan, number int64, file []byte, by audit.Actor, now time.Time) (row collections.BatchRow, err error) {
	d := collections.BatchDraft{
		ID: collections.NewUUID(), Number: fmt.Sprintf("%09d", number), Usage: h.Billing.Claims.Submitter.Usage, Claims: len(p.claims), File: phi.Text(file), CreatedBy: by.Email,
	}
	for _, c := range p.claims {
		for _, l := range c.serviceLines() {
			d.Lines++
			d.ChargeCents += l.ChargeCents
		}
	}
	if err := collections.AddClaimBatch(tx, d, now); err != nil {
		return row, err
	}
	for _, c := range p.claims {
		for _, l := range c.lines {
			err := collections.AddClaimLine(tx, collections.ClaimLine{
				BatchID: d.ID, EntryID: l.EntryID, Claim: c.control, Line: l.control, Frequency: l.Frequency, ChargeCents: l.ChargeCents, Carried: l.isCarried, Sequence: p.sequence,
			}, now)
			if err != nil {
				return row, err
			}
		}
	}
	return collections.FindBatchRow(tx, d.ID)
}

// precheckLines recounts the entries to submit, before the transaction. An error in any line rejects the batch.
func (h Engine) precheckLines(app core.App, p batchPlan, number int64, now time.Time) (list []billing.PrecheckedSubmission, err error) {
	var refusals []LineErrors
	for _, c := range p.claims {
		for i, l := range c.lines {
			if !l.needsSubmission() {
				continue
			}
			c.lines[i].isSubmitted = true
			decided, err := h.Billing.PrecheckSubmission(app, l.entry, l.Frequency, fmt.Sprintf("%09d", number), now)
			if refusals, err = addLineErrors(refusals, l.EntryID, err); err != nil {
				return nil, err
			}
			list = append(list, decided)
		}
	}
	return list, lineErrorsFault(refusals)
}

// submit applies the prechecked submissions in the transaction, and checks that the other lines are unchanged since planning.
func (h Engine) submit(tx core.App, p batchPlan, decided []billing.PrecheckedSubmission, head string, number int64, by audit.Actor, now time.Time) error {
	if p.sequence == collections.SecondarySequence {
		return h.submitSecondary(tx, p, number, by, now)
	}
	refused, err := h.Billing.SubmitPrechecked(tx, decided, head, by, now)
	if err != nil {
		return err
	}
	var refusals []LineErrors
	for _, d := range decided {
		if refusals, err = addLineErrors(refusals, d.EntryID(), refused[d.EntryID()]); err != nil {
			return err
		}
	}
	for _, c := range p.claims {
		for _, l := range c.lines {
			if l.isSubmitted {
				continue
			}
			stored, err := collections.FindBillingEntry(tx, l.EntryID)
			if err != nil {
				return err
			}
			if stored.Status() != l.entry.Status() || stored.BatchID() != l.entry.BatchID() {
				refusals = append(refusals, LineErrors{l.EntryID, []claims.Issue{{Code: WrongState, Field: "lifecycle_status", Message: "The entry was changed by another request."}}})
			}
		}
	}
	return lineErrorsFault(refusals)
}

// addLineErrors adds the reasons of a refused transition; it returns other errors.
func addLineErrors(list []LineErrors, entryID string, err error) ([]LineErrors, error) {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		return append(list, LineErrors{entryID, issuesOfFault(refused)}), nil
	}
	return list, err
}

// lineErrorsFault returns the fault of a batch with refused lines; nil if there are none.
func lineErrorsFault(refusals []LineErrors) error {
	if len(refusals) == 0 {
		return nil
	}
	return fault.State("invalid_state", "The facts do not support some of these lines.").With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}

// issuesOfFault returns the reasons of a refused transition.
func issuesOfFault(refused *fault.Error) (list []claims.Issue) {
	reasons, _ := refused.Extra["warnings"].([]string)
	for _, reason := range reasons {
		list = append(list, claims.Issue{Code: reason, Field: "facts", Message: refused.Detail})
	}
	if len(list) == 0 {
		list = []claims.Issue{{Code: refused.Code, Field: "facts", Message: refused.Detail}}
	}
	return list
}

// unrepresentableFault returns which lines have data that an 837P cannot carry, such as a name in letters without a Latin form.
func (p batchPlan) unrepresentableFault(err error) error {
	var invalid x12.FieldErrors
	if !errors.As(err, &invalid) {
		return err
	}
	var refusals []LineErrors
	for _, c := range p.claims {
		ofClaim := slices.DeleteFunc(slices.Clone(invalid), func(w x12.FieldError) bool { return w.Claim != c.control && w.Claim != "" })
		found := claims.UnrepresentableFields(ofClaim, c.lines[0].Claim)
		for _, l := range c.lines {
			if len(found) > 0 && !l.isCarried { // carried lines were not selected
				refusals = append(refusals, LineErrors{l.EntryID, found})
			}
		}
	}
	return fault.State("invalid_state", "An 837P cannot carry some of these lines.").
		With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}
