package clearinghouse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// Outcome is what taking in a file did. Applied counts the lines that it changed or confirmed; none of a file that was applied before.
type Outcome struct {
	Response *collections.ClaimResponse
	Applied  int
	Repeated bool
}

// importMu is whose file is being applied: one after the other, so that a file which comes twice at the same moment is a repeated one.
var importMu sync.Mutex

// Import applies a file of answers: 999, 277CA and 835, alone or together. Every line is changed in a transaction of its own, once however often and in
// whatever envelope the same decision comes; a file that was begun when the service stopped is gone on with when it comes again. What cannot be
// matched is kept for a person. A file that is not as X12 must be, or for somebody else, is an invalid_x12 fault, and nothing has changed.
// Source: docs/decisions/claims.md, "Responses".
func (h Engine) Import(app core.App, file []byte, by audit.Actor, now time.Time) (Outcome, error) {
	answers, err := h.readResponses(app, file)
	if err != nil {
		return Outcome{}, err
	}
	importMu.Lock()
	defer importMu.Unlock()
	sum := sha256.Sum256(file)
	digest := hex.EncodeToString(sum[:])
	response, err := collections.FindResponseByDigest(app, digest)
	if err == nil && !response.FinishedAt().IsZero() {
		return Outcome{Response: response, Repeated: true}, nil
	}
	if err != nil && !collections.Missing(err) {
		return Outcome{}, err
	}
	if err != nil {
		if response, err = h.storeResponse(app, digest, file, answers, by, now); err != nil {
			return Outcome{}, err
		}
	}
	t := importRun{Engine: h, app: app, by: by, now: now, keys: map[string]int{}}
	for _, answer := range answers {
		if err := t.importResponse(answer); err != nil {
			return Outcome{}, err
		}
	}
	if err := collections.FinishClaimResponse(app, response.Id, t.applied, t.unmatched, now); err != nil {
		return Outcome{}, err
	}
	response, err = collections.FindClaimResponse(app, response.Id)
	return Outcome{Response: response, Applied: t.applied}, err
}

// readResponses takes a file apart, and refuses one that is for somebody else or a test where claims are real.
func (h Engine) readResponses(app core.App, file []byte) ([]x12.Response, error) {
	s := h.Billing.Claims.Submitter
	var receivers []string
	if s.ID != "" {
		receivers = []string{s.ID}
	}
	answers, err := x12.ReadResponses(file, receivers...)
	if wrong, ok := errors.AsType[*x12.Fault](err); ok {
		return nil, fault.New(fault.Invalid, "invalid_x12", wrong.Error()).With("segment", wrong.Segment).With("position", wrong.Position).With("ordinal", wrong.Ordinal)
	}
	if err != nil {
		return nil, err
	}
	if s.ID == "" { // without it nobody can tell whom the file is for; where nothing was ever sent it is about nothing either
		_, batches, err := collections.PageOfClaimBatches(app, 0, 1)
		if err != nil {
			return nil, err
		}
		if batches > 0 {
			return nil, fault.New(fault.Invalid, "invalid_x12", "VIGIL_CLAIMS_SUBMITTER_ID is not set: nobody can tell whether the file is for this practice.").
				With("segment", "ISA").With("position", 8).With("ordinal", 1)
		}
	}
	if len(answers) == 0 {
		return nil, fault.New(fault.Invalid, "invalid_x12", "The file has no answer in it.").With("segment", "ST").With("position", 0).With("ordinal", 0)
	}
	if slices.ContainsFunc(answers, func(a x12.Response) bool { return a.Test }) && s.Usage == "P" {
		return nil, fault.New(fault.Invalid, "invalid_x12", "The file is marked as a test, and claims are sent for production.").
			With("segment", "ISA").With("position", 15).With("ordinal", 1)
	}
	return answers, nil
}

// keep stores the file before anything is done with it.
func (h Engine) storeResponse(app core.App, digest string, file []byte, answers []x12.Response, by audit.Actor, now time.Time) (response *collections.ClaimResponse, err error) {
	kind := answers[0].Type
	if slices.ContainsFunc(answers, func(a x12.Response) bool { return a.Type != kind }) {
		kind = "mixed"
	}
	err = app.RunInTransaction(func(tx core.App) error {
		response, err = collections.FindResponseByDigest(tx, digest) // a command may be at it, too
		if !collections.Missing(err) {
			return err
		}
		response, err = collections.AddClaimResponse(tx, collections.ResponseDraft{
			Digest: digest, Type: kind, ControlNumber: answers[0].Interchange, CreatedBy: by.Email, File: phi.Text(base64.StdEncoding.EncodeToString(file)),
		}, now)
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.BillingImport, Actor: by, ResourceType: audit.ResourceClaimResponse, ResourceID: response.Id,
			Changes: audit.Changes{"type": {New: kind}, "control_number": {New: answers[0].Interchange}},
		}, now)
	})
	return response, err
}

// importRun is a file being applied.
type importRun struct {
	Engine
	app       core.App
	by        audit.Actor
	now       time.Time
	applied   int
	unmatched []collections.Unmatched
	keys      map[string]int // how often a decision was named in this file
}

func (t *importRun) importResponse(a x12.Response) error {
	switch {
	case a.ImplementationAck != nil:
		return t.import999(*a.ImplementationAck)
	case a.ClaimAck != nil:
		return t.import277CA(*a.ClaimAck)
	case a.Remittance != nil:
		return t.import835(*a.Remittance)
	case a.InterchangeAck != nil:
		return t.importTA1(*a.InterchangeAck)
	}
	return nil
}

func (t *importRun) addUnmatched(segment, control string, amount x12.Cents, reason string) {
	t.unmatched = append(t.unmatched, collections.Unmatched{Segment: segment, ControlNumber: control, AmountCents: int64(amount), Reason: reason})
}

// importTA1 takes in what became of an envelope: one that was refused takes all its claims with it.
func (t *importRun) importTA1(r x12.InterchangeAck) error {
	return t.setBatchResult("TA1", r.ControlNumber, r.Code == "R", false, []string{r.Note})
}

// import999 takes in whether our group could be read. There is one transaction set in it.
func (t *importRun) import999(s x12.ImplementationAck) error {
	refused, codes := s.Rejected(), slices.Clone(s.Codes)
	for _, set := range s.Sets {
		refused = refused || set.Rejected()
		codes = append(codes, set.Codes...)
		for _, e := range set.Errors {
			codes = append(codes, e.Segment+" "+e.Code)
		}
	}
	return t.setBatchResult("AK1", s.Group, refused, s.Code == "P", codes)
}

// setBatchResult marks a batch by the number of its interchange or group, and sends all its lines back where it was refused.
func (t *importRun) setBatchResult(segment, number string, refused, partly bool, codes []string) error {
	row, err := collections.FindBatchByNumber(t.app, padded(number))
	if collections.Missing(err) {
		t.addUnmatched(segment, number, 0, "unknown_batch")
		return nil
	}
	if err != nil {
		return err
	}
	if t.isTestBatch(row) {
		t.addUnmatched(segment, number, 0, claims.TestUsage)
		return nil
	}
	status := collections.BatchAccepted
	if refused {
		status = collections.BatchRejected
	} else if partly {
		status = collections.BatchPartly
	}
	if row.Status != collections.BatchRejected && row.Status != collections.BatchPartly || status == collections.BatchRejected {
		if err := collections.SetBatchStatus(t.app, row.ID, status, t.now); err != nil {
			return err
		}
	}
	lines, err := collections.LinesOfBatch(t.app, row.ID)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if !refused {
			t.applied++
		} else if err := t.rejectLine(l, "999", codes); err != nil {
			return err
		}
	}
	return nil
}

// padded is a control number with its leading zeros, which a 999 may leave out.
func padded(number string) string {
	for len(number) < 9 {
		number = "0" + number
	}
	return number
}

// rejectLine sends a line back, unless it was sent anew since.
func (t *importRun) rejectLine(l collections.ClaimLine, source string, codes []string) error {
	entry, err := collections.FindBillingEntry(t.app, l.EntryID)
	if err != nil {
		return fmt.Errorf("line %s: %w", l.Line, err)
	}
	if l.Carried || entry.ClaimControlNumber() != l.Claim {
		return nil
	}
	if entry.Status() == billing.VoidRequested && l.Frequency != claims.VoidOfClaim {
		t.addUnmatched("CLM", l.Claim, x12.Cents(l.ChargeCents), "void_requested") // there is nothing at the payer that it could void
		return nil
	}
	if entry.BatchID() == "" {
		return nil
	}
	_, err = t.Billing.ApplyTransition(t.app, l.EntryID, t.Billing.Reject(source, distinctCodes(codes), t.now), t.by, t.now)
	return t.countResult(err, "CLM", l.Claim, 0)
}

// countResult counts what was applied; what the state of a line does not allow is for a person.
func (t *importRun) countResult(err error, segment, control string, amount x12.Cents) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		t.addUnmatched(segment, control, amount, refused.Code)
		return nil
	}
	if err == nil {
		t.applied++
	}
	return err
}

func distinctCodes(codes []string) []string {
	codes = slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c == "" })
	slices.Sort(codes)
	return append([]string{}, slices.Compact(codes)...)
}

// import277CA takes in whether claims were taken up for decision.
func (t *importRun) import277CA(s x12.ClaimAck) error {
	for _, source := range s.Sources {
		if source.Rejected() && len(source.Providers) == 0 {
			if err := t.rejectBatch(source); err != nil {
				return err
			}
			continue
		}
		for _, provider := range source.Providers {
			for _, claim := range provider.Claims {
				if err := t.importClaimStatus(claim, source.Rejected() || provider.Rejected() || claim.Rejected()); err != nil {
					return err
				}
			}
			if provider.Rejected() && len(provider.Claims) == 0 {
				t.addUnmatched("HL", source.Batch, 0, "provider_refused")
			}
		}
	}
	return nil
}

// rejectBatch takes in that a whole batch was refused.
func (t *importRun) rejectBatch(source x12.SourceStatus) error {
	row, err := collections.FindBatchByNumber(t.app, padded(source.Batch))
	if collections.Missing(err) {
		t.addUnmatched("TRN", source.Batch, 0, "unknown_batch")
		return nil
	}
	if err != nil {
		return err
	}
	if t.isTestBatch(row) {
		t.addUnmatched("TRN", source.Batch, 0, claims.TestUsage)
		return nil
	}
	if err := collections.SetBatchStatus(t.app, row.ID, collections.BatchRejected, t.now); err != nil {
		return err
	}
	lines, err := collections.LinesOfBatch(t.app, row.ID)
	for _, l := range lines {
		if err == nil {
			err = t.rejectLine(l, "277CA", codesOf(source.Statuses))
		}
	}
	return err
}

// importClaimStatus takes in the word on one claim.
func (t *importRun) importClaimStatus(c x12.ClaimStatus, refused bool) error {
	lines, err := collections.LinesOfClaim(t.app, c.ControlNumber)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		t.addUnmatched("TRN", c.ControlNumber, 0, "unknown_claim")
		return nil
	}
	batch, err := collections.FindBatchRow(t.app, lines[0].BatchID)
	if err != nil {
		return err
	}
	if t.isTestBatch(batch) {
		t.addUnmatched("TRN", c.ControlNumber, 0, claims.TestUsage)
		return nil
	}
	codes := codesOf(c.Statuses)
	for _, l := range c.Lines {
		codes = append(codes, codesOf(l.Statuses)...)
	}
	for _, l := range lines {
		switch {
		case refused:
			if err := t.rejectLine(l, "277CA", codes); err != nil {
				return err
			}
		case c.PayerControlNumber != "":
			if err := collections.SetPayerControlNumber(t.app, l.EntryID, l.Claim, c.PayerControlNumber, t.now); err != nil {
				return err
			}
			t.applied++
		default:
			t.applied++
		}
	}
	if refused {
		return t.setPartlyAccepted(batch)
	}
	return nil
}

// setPartlyAccepted notes that not all of a batch was taken up.
func (t *importRun) setPartlyAccepted(batch collections.BatchRow) error {
	if batch.Status == collections.BatchRejected {
		return nil
	}
	return collections.SetBatchStatus(t.app, batch.ID, collections.BatchPartly, t.now)
}

// isTestBatch reports whether a file was sent as a test where claims are sent for production now. A payer knows nothing of it, so that what an answer says of
// it, marked for production as every answer is then, is for a person: the claim may be on its way again, and its answer is to come.
// Source: docs/decisions/claims.md, "Tests".
func (t *importRun) isTestBatch(batch collections.BatchRow) bool {
	return batch.Usage == "T" && t.Billing.Claims.Submitter.Usage == "P"
}

// codesOf are the categories and status codes, "A7:562".
func codesOf(words []x12.StatusInfo) (codes []string) {
	for _, w := range words {
		for _, r := range w.Codes {
			codes = append(codes, r.Category+":"+r.Code)
		}
	}
	return codes
}
