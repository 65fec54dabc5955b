package clearinghouse

import (
	"cmp"
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

// Outcome is the result of an import. Applied counts the lines that were changed or confirmed; 0 for a file that was imported before.
type Outcome struct {
	Response *collections.ClaimResponse
	Applied  int
	Repeated bool
	// Remittances are the payments of the file, in its order, also those that an earlier file brought; none for a file that was imported before.
	Remittances []string
}

// importMu serializes imports, so that a file that arrives twice at the same time is recognized as repeated.
var importMu sync.Mutex

// Import imports a file of responses (999, 277CA, 835). Each line, or claim of an 835, is changed
// in its own transaction, once for any number of copies of a decision. Importing the file again
// continues an interrupted import. Items that match no line are stored for a person. An invalid
// file, or one for another receiver, is an invalid_x12 fault and changes nothing. Source:
// docs/decisions/claims.md, "Responses".
func (h Engine) Import(app core.App, file []byte, by audit.Actor, now time.Time) (Outcome, error) {
	answers, err := h.readResponses(app, file)
	if err != nil {
		return Outcome{}, err
	}
	importMu.Lock()
	defer importMu.Unlock()
	return h.importAnswers(app, file, answers, by, now)
}

// importAnswers imports the responses of a file; the caller holds importMu.
func (h Engine) importAnswers(app core.App, file []byte, answers []x12.Response, by audit.Actor, now time.Time) (Outcome, error) {
	sum := sha256.Sum256(file)
	digest := hex.EncodeToString(sum[:])
	response, err := collections.FindResponseByDigest(app, digest)
	if err == nil && !response.FinishedAt().IsZero() {
		return Outcome{Response: response, Repeated: true}, nil
	}
	if err != nil && !collections.IsNotFound(err) {
		return Outcome{}, err
	}
	if err != nil {
		if response, err = h.storeResponse(app, digest, file, answers, by, now); err != nil {
			return Outcome{}, err
		}
	}
	t := importRun{Engine: h, app: app, by: by, now: now, responseID: response.Id, seen: map[string]bool{}, unposted: map[string]map[string][]collections.RemittanceItem{}}
	for _, answer := range answers {
		if err := t.importResponse(answer); err != nil {
			return Outcome{}, err
		}
	}
	if err := collections.FinishClaimResponse(app, response.Id, t.applied, t.unmatched, now); err != nil {
		return Outcome{}, err
	}
	response, err = collections.FindClaimResponse(app, response.Id)
	return Outcome{Response: response, Applied: t.applied, Remittances: t.remittances}, err
}

// Preview imports a file like [Engine.Import], lets read see the result, and then undoes everything. Other writers wait until it ends. It takes importMu
// before the one connection that writes, as imports do, so that neither waits for the other.
func (h Engine) Preview(app core.App, file []byte, by audit.Actor, now time.Time, read func(tx core.App, done Outcome) error) error {
	answers, err := h.readResponses(app, file)
	if err != nil {
		return err
	}
	importMu.Lock()
	defer importMu.Unlock()
	err = app.RunInTransaction(func(tx core.App) error {
		done, err := h.importAnswers(tx, file, answers, by, now)
		if err == nil {
			err = read(tx, done)
		}
		return cmp.Or(err, errPreviewed)
	})
	if errors.Is(err, errPreviewed) {
		return nil
	}
	return err
}

// errPreviewed undoes the transaction of a preview.
var errPreviewed = errors.New("previewed")

// readResponses parses a file and rejects one that is for another receiver, or a test in production.
func (h Engine) readResponses(app core.App, file []byte) ([]x12.Response, error) {
	s := h.Billing.Claims.Submitter
	var receivers []string
	if s.ID != "" {
		receivers = []string{s.ID}
		payers, err := collections.ListPayers(app)
		if err != nil {
			return nil, err
		}
		for _, p := range payers {
			receivers = append(receivers, p.ReceiverIDs...)
		}
	}
	answers, err := x12.ReadResponses(file, receivers...)
	if wrong, ok := errors.AsType[*x12.ParseError](err); ok {
		return nil, fault.New(fault.Invalid, "invalid_x12", wrong.Error()).With("segment", wrong.Segment).With("position", wrong.Position).With("ordinal", wrong.Ordinal)
	}
	if err != nil {
		return nil, err
	}
	if s.ID == "" { // the receiver cannot be checked; if nothing was ever sent, nothing can match
		_, batches, err := collections.PageOfClaimBatches(app, 0, 1)
		if err != nil {
			return nil, err
		}
		if batches > 0 {
			return nil, fault.New(fault.Invalid, "invalid_x12", "VIGIL_CLAIMS_SUBMITTER_ID is not set: set it so that the receiver of the file can be checked.").
				With("segment", "ISA").With("position", 8).With("ordinal", 1)
		}
	}
	if len(answers) == 0 {
		return nil, fault.New(fault.Invalid, "invalid_x12", "The file contains no response.").With("segment", "ST").With("position", 0).With("ordinal", 0)
	}
	if slices.ContainsFunc(answers, func(a x12.Response) bool { return a.Test }) && s.Usage == "P" {
		return nil, fault.New(fault.Invalid, "invalid_x12", "The file is marked as a test, but claims are sent for production.").
			With("segment", "ISA").With("position", 15).With("ordinal", 1)
	}
	return answers, nil
}

// storeResponse stores the file before it is applied.
func (h Engine) storeResponse(app core.App, digest string, file []byte, answers []x12.Response, by audit.Actor, now time.Time) (response *collections.ClaimResponse, err error) {
	kind := answers[0].Type
	if slices.ContainsFunc(answers, func(a x12.Response) bool { return a.Type != kind }) {
		kind = "mixed"
	}
	err = app.RunInTransaction(func(tx core.App) error {
		response, err = collections.FindResponseByDigest(tx, digest) // another process may import it
		if !collections.IsNotFound(err) {
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

// importRun is an import in progress.
type importRun struct {
	Engine
	app       core.App
	by        audit.Actor
	now       time.Time
	applied   int
	unmatched []collections.Unmatched

	responseID   string
	seen         map[string]bool // payments of this file
	remittance   string          // the payment that is being imported
	remittances  []string        // all payments of this file
	items        []collections.RemittanceItem
	closed       []collections.RemittanceItem // of an earlier import, that a person resolved
	isCorrection bool                         // the payment corrects an earlier file of it
	keys         map[string]int               // how often a decision occurred in the payment

	unposted map[string]map[string][]collections.RemittanceItem // repeated decisions that were not posted, by payer and payment
}

func (ir *importRun) importResponse(a x12.Response) error {
	switch {
	case a.ImplementationAck != nil:
		return ir.import999(*a.ImplementationAck)
	case a.ClaimAck != nil:
		return ir.import277CA(*a.ClaimAck)
	case a.Remittance != nil:
		return ir.import835(*a.Remittance)
	case a.InterchangeAck != nil:
		return ir.importTA1(*a.InterchangeAck)
	}
	return nil
}

func (ir *importRun) addUnmatched(segment, control string, amount x12.Cents, reason string) {
	ir.unmatched = append(ir.unmatched, collections.Unmatched{Segment: segment, ControlNumber: control, AmountCents: int64(amount), Reason: reason})
}

// countResult counts applied changes; a change that the state of a line does not allow is stored for a person.
func (ir *importRun) countResult(err error, segment, control string, amount x12.Cents) error {
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
		ir.addUnmatched(segment, control, amount, refused.Code)
		return nil
	}
	if err == nil {
		ir.applied++
	}
	return err
}

// isTest is isTestBatch for the batch with an id, "" for a claim that other software sent.
func (ir *importRun) isTest(batchID string) (bool, error) {
	if batchID == "" {
		return false, nil
	}
	batch, err := collections.FindBatchRow(ir.app, batchID)
	return ir.isTestBatch(batch), err
}

// isTestBatch reports whether a batch was sent as a test, while claims are now sent for production. A payer does not have it, so a production
// response about it is stored for a person: the claim may have been sent again, and its own response is still to come. Source:
// docs/decisions/claims.md, "Tests".
func (ir *importRun) isTestBatch(batch collections.BatchRow) bool {
	return batch.Usage == "T" && ir.Billing.Claims.Submitter.Usage == "P"
}
