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

// turn is whose file is being applied: one after the other, so that a file which comes twice at the same moment is a repeated one.
var turn sync.Mutex

// Take applies a file of answers: 999, 277CA and 835, alone or together. Every line is changed in a transaction of its own, once however often and in
// whatever envelope the same decision comes; a file that was begun when the service stopped is gone on with when it comes again. What cannot be
// matched is kept for a person. A file that is not as X12 must be, or for somebody else, is an invalid_x12 fault, and nothing has changed.
// Source: docs/decisions/claims.md, "Responses".
func (h House) Take(app core.App, file []byte, by audit.Actor, now time.Time) (Outcome, error) {
	answers, err := h.read(app, file)
	if err != nil {
		return Outcome{}, err
	}
	turn.Lock()
	defer turn.Unlock()
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
	t := taking{House: h, app: app, by: by, now: now, keys: map[string]int{}}
	for _, answer := range answers {
		if err := t.answer(answer); err != nil {
			return Outcome{}, err
		}
	}
	if err := collections.FinishClaimResponse(app, response.Id, t.applied, t.unmatched, now); err != nil {
		return Outcome{}, err
	}
	response, err = collections.FindClaimResponse(app, response.Id)
	return Outcome{Response: response, Applied: t.applied}, err
}

// read takes a file apart, and refuses one that is for somebody else or a test where claims are real.
func (h House) read(app core.App, file []byte) ([]x12.Answer, error) {
	s := h.Billing.Claims.Submitter
	var receivers []string
	if s.ID != "" {
		receivers = []string{s.ID}
	}
	answers, err := x12.Answers(file, receivers...)
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
	if slices.ContainsFunc(answers, func(a x12.Answer) bool { return a.Test }) && s.Usage == "P" {
		return nil, fault.New(fault.Invalid, "invalid_x12", "The file is marked as a test, and claims are sent for production.").
			With("segment", "ISA").With("position", 15).With("ordinal", 1)
	}
	return answers, nil
}

// keep stores the file before anything is done with it.
func (h House) storeResponse(app core.App, digest string, file []byte, answers []x12.Answer, by audit.Actor, now time.Time) (response *collections.ClaimResponse, err error) {
	kind := answers[0].Type
	if slices.ContainsFunc(answers, func(a x12.Answer) bool { return a.Type != kind }) {
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

// taking is a file being applied.
type taking struct {
	House
	app       core.App
	by        audit.Actor
	now       time.Time
	applied   int
	unmatched []collections.Unmatched
	keys      map[string]int // how often a decision was named in this file
}

func (t *taking) answer(a x12.Answer) error {
	switch {
	case a.Syntax != nil:
		return t.syntax(*a.Syntax)
	case a.Status != nil:
		return t.status(*a.Status)
	case a.Payment != nil:
		return t.payment(*a.Payment)
	case a.Receipt != nil:
		return t.receipt(*a.Receipt)
	}
	return nil
}

func (t *taking) leave(segment, control string, amount x12.Cents, reason string) {
	t.unmatched = append(t.unmatched, collections.Unmatched{Segment: segment, ControlNumber: control, AmountCents: int64(amount), Reason: reason})
}

// receipt takes in what became of an envelope: one that was refused takes all its claims with it.
func (t *taking) receipt(r x12.Receipt) error {
	return t.batch("TA1", r.ControlNumber, r.Code == "R", false, []string{r.Note})
}

// syntax takes in whether our group could be read. There is one transaction set in it.
func (t *taking) syntax(s x12.Syntax) error {
	refused, codes := s.Refused(), slices.Clone(s.Codes)
	for _, set := range s.Sets {
		refused = refused || set.Refused()
		codes = append(codes, set.Codes...)
		for _, e := range set.Errors {
			codes = append(codes, e.Segment+" "+e.Code)
		}
	}
	return t.batch("AK1", s.Group, refused, s.Code == "P", codes)
}

// batch marks a batch by the number of its interchange or group, and sends all its lines back where it was refused.
func (t *taking) batch(segment, number string, refused, partly bool, codes []string) error {
	row, err := collections.FindBatchByNumber(t.app, padded(number))
	if collections.Missing(err) {
		t.leave(segment, number, 0, "unknown_batch")
		return nil
	}
	if err != nil {
		return err
	}
	if t.tried(row) {
		t.leave(segment, number, 0, claims.TestUsage)
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
		} else if err := t.reject(l, "999", codes); err != nil {
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

// reject sends a line back, unless it was sent anew since.
func (t *taking) reject(l collections.ClaimLine, source string, codes []string) error {
	entry, err := collections.FindBillingEntry(t.app, l.EntryID)
	if err != nil {
		return fmt.Errorf("line %s: %w", l.Line, err)
	}
	if l.Carried || entry.ClaimControlNumber() != l.Claim {
		return nil
	}
	if entry.Status() == billing.VoidRequested && l.Frequency != claims.VoidOfClaim {
		t.leave("CLM", l.Claim, x12.Cents(l.ChargeCents), "void_requested") // there is nothing at the payer that it could void
		return nil
	}
	if entry.BatchID() == "" {
		return nil
	}
	_, err = t.Billing.Do(t.app, l.EntryID, t.Billing.Reject(source, compact(codes), t.now), t.by, t.now)
	return t.done(err, "CLM", l.Claim, 0)
}

// done counts what was applied; what the state of a line does not allow is for a person.
func (t *taking) done(err error, segment, control string, amount x12.Cents) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		t.leave(segment, control, amount, refused.Code)
		return nil
	}
	if err == nil {
		t.applied++
	}
	return err
}

func compact(codes []string) []string {
	codes = slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c == "" })
	slices.Sort(codes)
	return append([]string{}, slices.Compact(codes)...)
}

// status takes in whether claims were taken up for decision.
func (t *taking) status(s x12.Status) error {
	for _, source := range s.Sources {
		if source.Refused() && len(source.Providers) == 0 {
			if err := t.sendBack(source); err != nil {
				return err
			}
			continue
		}
		for _, provider := range source.Providers {
			for _, claim := range provider.Claims {
				if err := t.claim(claim, source.Refused() || provider.Refused() || claim.Refused()); err != nil {
					return err
				}
			}
			if provider.Refused() && len(provider.Claims) == 0 {
				t.leave("HL", source.Batch, 0, "provider_refused")
			}
		}
	}
	return nil
}

// sendBack takes in that a whole batch was refused.
func (t *taking) sendBack(source x12.SourceStatus) error {
	row, err := collections.FindBatchByNumber(t.app, padded(source.Batch))
	if collections.Missing(err) {
		t.leave("TRN", source.Batch, 0, "unknown_batch")
		return nil
	}
	if err != nil {
		return err
	}
	if t.tried(row) {
		t.leave("TRN", source.Batch, 0, claims.TestUsage)
		return nil
	}
	if err := collections.SetBatchStatus(t.app, row.ID, collections.BatchRejected, t.now); err != nil {
		return err
	}
	lines, err := collections.LinesOfBatch(t.app, row.ID)
	for _, l := range lines {
		if err == nil {
			err = t.reject(l, "277CA", codesOf(source.Words))
		}
	}
	return err
}

// claim takes in the word on one claim.
func (t *taking) claim(c x12.ClaimStatus, refused bool) error {
	lines, err := collections.LinesOfClaim(t.app, c.ControlNumber)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		t.leave("TRN", c.ControlNumber, 0, "unknown_claim")
		return nil
	}
	batch, err := collections.FindBatchRow(t.app, lines[0].BatchID)
	if err != nil {
		return err
	}
	if t.tried(batch) {
		t.leave("TRN", c.ControlNumber, 0, claims.TestUsage)
		return nil
	}
	codes := codesOf(c.Words)
	for _, l := range c.Lines {
		codes = append(codes, codesOf(l.Words)...)
	}
	for _, l := range lines {
		switch {
		case refused:
			if err := t.reject(l, "277CA", codes); err != nil {
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
		return t.partly(batch)
	}
	return nil
}

// partly notes that not all of a batch was taken up.
func (t *taking) partly(batch collections.BatchRow) error {
	if batch.Status == collections.BatchRejected {
		return nil
	}
	return collections.SetBatchStatus(t.app, batch.ID, collections.BatchPartly, t.now)
}

// tried reports whether a file was sent as a test where claims are sent for production now. A payer knows nothing of it, so that what an answer says of
// it, marked for production as every answer is then, is for a person: the claim may be on its way again, and its answer is to come.
// Source: docs/decisions/claims.md, "Tests".
func (t *taking) tried(batch collections.BatchRow) bool {
	return batch.Usage == "T" && t.Billing.Claims.Submitter.Usage == "P"
}

// codesOf are the categories and status codes, "A7:562".
func codesOf(words []x12.Word) (codes []string) {
	for _, w := range words {
		for _, r := range w.Reasons {
			codes = append(codes, r.Category+":"+r.Code)
		}
	}
	return codes
}
