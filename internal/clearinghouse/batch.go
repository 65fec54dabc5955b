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

// MaxLines is how many entries one batch takes.
const MaxLines = 1000

// Refusal is what stands against a line of a batch.
type Refusal struct {
	EntryID string           `json:"entry_id"`
	Errors  []claims.Finding `json:"errors"`
}

// The findings of batches beside those of preflight.
const (
	WrongState = "invalid_transition"
	NotForEDI  = claims.SelfPay
)

// SendBatch makes a batch of entries: reviewed ones, which become submitted, and such submitted ones or ones to be voided that stood in none since. It is
// all of them or none: what stands against any is an invalid_state fault with each line's errors. Source: docs/decisions/claims.md, "Batches".
func (h Engine) SendBatch(app core.App, entryIDs []string, by audit.Actor, now time.Time) (row collections.BatchRow, err error) {
	head, _, err := collections.AuditHead(app) // before anything is read
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
	var number int64
	err = app.RunInTransaction(func(tx core.App) error { // a number that is not used stays so
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
		tx = collections.Prepared(tx)
		if err := h.submit(tx, plan, decided, head, by, now); err != nil {
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

// epoch is from when interchanges are numbered.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// nextInterchangeNumber takes the next number of an interchange: one more than the last, and at least the minutes since the epoch, so that a practice that was
// brought back from a backup does not send old numbers anew. Nine digits last for nineteen centuries.
func nextInterchangeNumber(tx core.App, now time.Time) (int64, error) {
	const sequence = "claim-interchanges"
	last, err := collections.LastNumber(tx, sequence)
	if err != nil {
		return 0, err
	}
	number := max(last+1, int64(now.Sub(epoch)/time.Minute))
	return number, collections.SetLastNumber(tx, sequence, number)
}

// batchClaim is a claim of a batch.
type batchClaim struct {
	control      string
	frequency    string
	payerControl string // the payer's number of the claim that is replaced or voided
	chain        string // of the claims that it replaces or voids; "" for none that is known here
	lines        []batchLine
}

// serviceLines are the lines that the file has: on a replacement none that is to be voided.
func (c *batchClaim) serviceLines() []batchLine {
	if c.frequency != claims.Replacement {
		return c.lines
	}
	return slices.DeleteFunc(slices.Clone(c.lines), func(l batchLine) bool { return l.Frequency == claims.VoidOfClaim })
}

// form is a claim as the 837P has it.
func (c *batchClaim) form() x12.Claim {
	told := c.serviceLines()
	lines := make([]claims.FormLine, len(told))
	for i, l := range told {
		lines[i] = claims.FormLine{Claim: l.Claim, Control: l.control}
	}
	return claims.Build837P(c.control, c.frequency, c.payerControl, lines)
}

// batchLine is an entry as a line. Carried ones stand on a replacement only because they stood on the claim that is replaced.
type batchLine struct {
	claims.Claim
	entry       *collections.BillingEntry
	isCarried   bool
	isResend    bool // it was sent as a test before
	isSubmitted bool // the batch submits it
	control     string
}

// needsSubmission reports whether a batch submits a line; the others are told to the payer as what they are.
func (l batchLine) needsSubmission() bool {
	return l.entry.Status() == billing.Reviewed || l.isResend && l.Frequency != claims.VoidOfClaim
}

type batchPlan struct{ claims []*batchClaim }

// assignNumbers gives every claim and line its number: of the interchange, and the place in it.
func (p batchPlan) assignNumbers(interchange int64) {
	for i, c := range p.claims {
		c.control = fmt.Sprintf("V%09dC%05d", interchange, i+1)
		for n := range c.lines {
			c.lines[n].control = fmt.Sprintf("%sL%02d", c.control, n+1)
		}
	}
}

// file is the batch as an 837P.
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

// store stores the batch, its lines, and what becomes of the entries.
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
				BatchID: d.ID, EntryID: l.EntryID, Claim: c.control, Line: l.control, Frequency: l.Frequency, ChargeCents: l.ChargeCents, Carried: l.isCarried,
			}, now)
			if err != nil {
				return row, err
			}
		}
	}
	return collections.FindBatchRow(tx, d.ID)
}

// precheckLines recounts what the batch submits, before the transaction: what stands against a line stands against the batch.
func (h Engine) precheckLines(app core.App, p batchPlan, number int64, now time.Time) (list []billing.PrecheckedSubmission, err error) {
	var refusals []Refusal
	for _, c := range p.claims {
		for i, l := range c.lines {
			if !l.needsSubmission() {
				continue
			}
			c.lines[i].isSubmitted = true
			decided, err := h.Billing.PrecheckSubmission(app, l.entry, l.Frequency, fmt.Sprintf("%09d", number), now)
			if refusals, err = addRefusal(refusals, l.EntryID, err); err != nil {
				return nil, err
			}
			list = append(list, decided)
		}
	}
	return list, refuseBatch(refusals)
}

// submit makes what was decided, in the transaction; another line stays as long as it is as it was planned.
func (h Engine) submit(tx core.App, p batchPlan, decided []billing.PrecheckedSubmission, head string, by audit.Actor, now time.Time) error {
	refused, err := h.Billing.SubmitPrechecked(tx, decided, head, by, now)
	if err != nil {
		return err
	}
	var refusals []Refusal
	for _, d := range decided {
		if refusals, err = addRefusal(refusals, d.EntryID(), refused[d.EntryID()]); err != nil {
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
				refusals = append(refusals, Refusal{l.EntryID, []claims.Finding{{Code: WrongState, Field: "lifecycle_status", Message: "The entry was changed by another request."}}})
			}
		}
	}
	return refuseBatch(refusals)
}

// addRefusal adds what a refused move says; other errors are passed on.
func addRefusal(list []Refusal, entryID string, err error) ([]Refusal, error) {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		return append(list, Refusal{entryID, refusalFindings(refused)}), nil
	}
	return list, err
}

// refuseBatch refuses a batch for what stands against its lines; nil where nothing does.
func refuseBatch(refusals []Refusal) error {
	if len(refusals) == 0 {
		return nil
	}
	return fault.State("invalid_state", "The facts do not support some of these lines.").With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}

// refusalFindings are the reasons of a refused move.
func refusalFindings(refused *fault.Error) (list []claims.Finding) {
	reasons, _ := refused.Extra["warnings"].([]string)
	for _, reason := range reasons {
		list = append(list, claims.Finding{Code: reason, Field: "facts", Message: refused.Detail})
	}
	if len(list) == 0 {
		list = []claims.Finding{{Code: refused.Code, Field: "facts", Message: refused.Detail}}
	}
	return list
}

// unrepresentableFault says which lines hold what the form cannot carry, such as a name in letters without a Latin form.
func (p batchPlan) unrepresentableFault(err error) error {
	var wrong x12.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	var refusals []Refusal
	for _, c := range p.claims {
		mine := slices.DeleteFunc(slices.Clone(wrong), func(w x12.FieldError) bool { return w.Claim != c.control && w.Claim != "" })
		found := claims.UnrepresentableFields(mine, c.lines[0].HasOtherSubscriber())
		for _, l := range c.lines {
			if len(found) > 0 && !l.isCarried { // nobody chose those
				refusals = append(refusals, Refusal{l.EntryID, found})
			}
		}
	}
	return fault.State("invalid_state", "The form of a claim cannot carry some of these lines.").
		With("warnings", []string{billing.PreflightErrors}).With("lines", refusals)
}
