package clearinghouse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
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

// isTestBatch reports whether a file was sent as a test where claims are sent for production now. A payer knows nothing of it, so that what an answer says of
// it, marked for production as every answer is then, is for a person: the claim may be on its way again, and its answer is to come.
// Source: docs/decisions/claims.md, "Tests".
func (t *importRun) isTestBatch(batch collections.BatchRow) bool {
	return batch.Usage == "T" && t.Billing.Claims.Submitter.Usage == "P"
}
