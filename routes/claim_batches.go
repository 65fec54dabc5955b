package routes

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// batchRows are the endpoints of claim batches and of the payers' responses.
func batchRows() []route {
	return []route{
		{http.MethodGet, "/billing/claim-batches/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listBatches},
		{http.MethodPost, "/billing/claim-batches/", authz.ManageBilling, ratelimit.User, (*api).createBatch},
		{http.MethodGet, "/billing/claim-batches/{id}/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, withRecord(byUUID(collections.FindBatchRow), (*api).readBatch)},
		{http.MethodGet, "/billing/claim-batches/{id}/file/", authz.ManageBilling, ratelimit.User, withRecord(byUUID(collections.FindBatchRow), (*api).readBatchFile)},
		{http.MethodGet, "/billing/claim-responses/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listResponses},
		{http.MethodPost, "/billing/claim-responses/", authz.ManageBilling, ratelimit.User, (*api).importResponse},
		{http.MethodPost, "/billing/claim-responses/preview/", authz.ManageBilling, ratelimit.User, (*api).previewResponse},
		{http.MethodGet, "/billing/claim-responses/{id}/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, withRecord(byUUID(collections.FindClaimResponse), (*api).readResponse)},
	}
}

const x12Type = "application/edi-x12" // RFC 1767

// maxPreview limits a file to preview: other writers wait until it ends.
const maxPreview = 1 << 20

// maxResponse limits a response file: a remittance of several thousand claims.
const maxResponse = 16 << 20

func (a *api) clearinghouseEngine() clearinghouse.Engine {
	return clearinghouse.Engine{Billing: a.Billing}
}

type batchView struct {
	ID                       string        `json:"id"`
	InterchangeControlNumber string        `json:"interchange_control_number"`
	Usage                    string        `json:"usage"`
	Claims                   int           `json:"claims"`
	Lines                    int           `json:"lines"`
	TotalCharge              billing.Cents `json:"total_charge"`
	Status                   string        `json:"status"`
	CreatedBy                string        `json:"created_by"`
	CreatedAt                *string       `json:"created_at"`
	Answers                  answersView   `json:"answers"`
}

// answersView counts the payers' responses to a batch so far.
type answersView struct {
	SentBack  int `json:"sent_back"`
	Paid      int `json:"paid"`
	Denied    int `json:"denied"`
	Voided    int `json:"voided"`
	SentAgain int `json:"sent_again"`
	Open      int `json:"open"`
}

// viewBatches renders batches with a summary of their responses.
func viewBatches(app core.App, rows []collections.BatchRow) ([]batchView, error) {
	ids := distinct(rows, func(b collections.BatchRow) string { return b.ID })
	answers, err := collections.OutcomesOfBatches(app, ids)
	return web.Map(rows, func(b collections.BatchRow) batchView {
		a := answers[b.ID]
		return batchView{
			b.ID, b.Number, b.Usage, b.Claims, b.Lines, billing.Cents(b.ChargeCents), b.Status, b.CreatedBy, instantOf(b.CreatedAt),
			answersView{a.Rejected, a.Paid, a.Denied, a.Voided, a.Resent, a.Open},
		}
	}), err
}

func (a *api) createBatch(c *web.Call) error {
	type batchBody struct {
		EntryIDs validate.Strings `json:"entry_ids"`
		Sequence validate.String  `json:"sequence"`
		Resend   validate.Boolean `json:"resend"`
	}
	send := a.clearinghouseEngine().SendBatch
	read := fromBody(func(body batchBody, checks *validate.Checks) []string {
		validate.NotNull(checks, "sequence", body.Sequence)
		isResend := readResend(checks, body.Resend)
		if checks.Text("sequence", body.Sequence, validate.Optional(0).OneOf(collections.PrimaryPayer, collections.SecondaryPayer)) == collections.SecondaryPayer {
			send = func(app core.App, ids []string, by audit.Actor, now time.Time) (collections.BatchRow, error) {
				return a.clearinghouseEngine().SendSecondary(app, ids, isResend, by, now)
			}
		} else if isResend {
			checks.Reject("resend", "Only claims to second payers are sent again this way: set sequence to secondary.")
		}
		return readEntryIDs(checks, body.EntryIDs, clearinghouse.MaxLines, true)
	})
	return create(c, read, func(app core.App, ids []string, by audit.Actor, now time.Time) (collections.BatchRow, error) {
		return send(app, ids, by, now)
	}, show(c, c.Created, viewBatches))
}

// readResend reads whether claims go again that the second payer has not answered.
func readResend(checks *validate.Checks, f validate.Boolean) bool {
	isResend := checks.Boolean("resend", f, false)
	return isResend != nil && *isResend
}

// billSecondary sends the claim of an entry to the second payer, and answers with the entry.
func (a *api) billSecondary(c *web.Call, entry *collections.BillingEntry) error {
	type secondaryBody struct {
		Resend validate.Boolean `json:"resend"`
	}
	isResend, err := web.ReadOptional(c, func(b secondaryBody, checks *validate.Checks) bool { return readResend(checks, b.Resend) })
	if err != nil {
		return err
	}
	if _, err := a.clearinghouseEngine().SendSecondary(c.App, []string{entry.Id}, isResend, c.Actor(), c.Now); err != nil {
		return err
	}
	entry, err = collections.FindBillingEntry(c.App, entry.Id)
	if err != nil {
		return err
	}
	return answerEntry(c, entry)
}

// readEntryIDs reads a list of 1 to most entry ids, and rejects duplicates if they must be unique.
func readEntryIDs(checks *validate.Checks, f validate.Strings, most int, unique bool) (ids []string) {
	if !f.Given() || len(f.Value) == 0 || len(f.Value) > most {
		checks.Reject("entry_ids", fmt.Sprintf("Expected a list of 1 to %d ids.", most))
	}
	seen := map[string]bool{}
	for i, text := range f.Value {
		id, ok := validate.ParseUUID(text)
		if !ok {
			checks.Reject(fmt.Sprintf("entry_ids.%d", i), "Must be a valid UUID.")
		} else if unique && seen[id] {
			checks.Reject(fmt.Sprintf("entry_ids.%d", i), "Remove the duplicate of this id.")
		}
		seen[id] = true
		ids = append(ids, id)
	}
	return ids
}

func (a *api) listBatches(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, err := collections.PageOfClaimBatches(c.App, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	views, err := viewBatches(c.App, page)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, 0)
}

// batchLineView is a claim of a batch.
type batchLineView struct {
	EntryID              string        `json:"entry_id"`
	ClaimControlNumber   string        `json:"claim_control_number"`
	LineControlNumber    string        `json:"line_control_number"`
	ClaimFrequencyCode   string        `json:"claim_frequency_code"`
	Charge               billing.Cents `json:"charge"`
	CarriedByReplacement bool          `json:"carried_by_replacement"`
}

type batchWithLines struct {
	batchView
	Entries []batchLineView `json:"entries"`
}

func (a *api) readBatch(c *web.Call, row collections.BatchRow) error {
	views, err := viewBatches(c.App, []collections.BatchRow{row})
	if err != nil {
		return err
	}
	lines, err := collections.LinesOfBatch(c.App, row.ID)
	return c.Respond(batchWithLines{views[0], web.Map(lines, func(l collections.ClaimLine) batchLineView {
		return batchLineView{l.EntryID, l.Claim, l.Line, l.Frequency, billing.Cents(l.ChargeCents), l.Carried}
	})}, err)
}

// readBatchFile answers with the 837P file and records a read of every patient in it.
func (a *api) readBatchFile(c *web.Call, row collections.BatchRow) error {
	lines, err := collections.LinesOfBatch(c.App, row.ID)
	if err != nil {
		return err
	}
	entries, err := collections.BillingEntriesByID(c.App, distinct(lines, func(l collections.ClaimLine) string { return l.EntryID }))
	if err != nil {
		return err
	}
	file, err := collections.BatchFile(c.App, row.ID)
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceClaimBatch, row.ID, entries, (*collections.BillingEntry).PatientID); err != nil {
		return err
	}
	return c.Attach(x12Type, row.Number+".837", []byte(file.Reveal()))
}

// responseView is an imported response file. Unmatched counts the parts that need manual review.
type responseView struct {
	ID            string  `json:"id"`
	Type          string  `json:"type"`
	ControlNumber string  `json:"control_number"`
	Applied       int     `json:"applied"`
	Unmatched     int     `json:"unmatched"`
	CreatedBy     string  `json:"created_by"`
	CreatedAt     *string `json:"created_at"`
	FinishedAt    *string `json:"finished_at"`
}

func viewResponse(r *collections.ClaimResponse) responseView {
	return responseView{
		r.Id, r.Type(), r.ControlNumber(), r.Applied(), len(r.Unmatched()), r.CreatedBy(), instantOrNull(r.CreatedAt()), instantOrNull(r.FinishedAt()),
	}
}

type importedResponseView struct {
	responseView
	Repeated bool `json:"repeated"`
}

// readX12 reads a body that is a file of responses.
func readX12(c *web.Call) ([]byte, error) {
	file, err := c.Body()
	if err == nil && strings.TrimSpace(string(file)) == "" {
		err = fault.New(fault.Invalid, "invalid_x12", "The file is empty.").With("segment", "ISA").With("position", 0).With("ordinal", 0)
	}
	return file, err
}

// responsePreviewView is what importing a file would do.
type responsePreviewView struct {
	Type          string             `json:"type"`
	ControlNumber string             `json:"control_number"`
	Applied       int                `json:"applied"`
	Unmatched     int                `json:"unmatched"`
	Repeated      bool               `json:"repeated"`
	Remittances   []remittanceDetail `json:"remittances"`
}

func (a *api) previewResponse(c *web.Call) error {
	file, err := readX12(c)
	if err != nil {
		return err
	}
	var view responsePreviewView
	err = a.clearinghouseEngine().Preview(c.App, file, c.Actor(), c.Now, func(tx core.App, done clearinghouse.Outcome) error {
		r := viewResponse(done.Response)
		view = responsePreviewView{r.Type, r.ControlNumber, done.Applied, r.Unmatched, done.Repeated, []remittanceDetail{}}
		ids := done.Remittances
		if done.Repeated {
			if ids, err = collections.RemittancesOfResponse(tx, done.Response.Id); err != nil {
				return err
			}
		}
		for _, id := range ids {
			remittance, err := collections.FindRemittance(tx, id)
			if err != nil {
				return err
			}
			detail, err := viewRemittanceDetail(tx, remittance)
			if err != nil {
				return err
			}
			view.Remittances = append(view.Remittances, detail)
		}
		return nil
	})
	return c.Respond(view, err)
}

func (a *api) importResponse(c *web.Call) error {
	file, err := readX12(c)
	if err != nil {
		return err
	}
	done, err := a.clearinghouseEngine().Import(c.App, file, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	view := importedResponseView{viewResponse(done.Response), done.Repeated}
	view.Applied = done.Applied
	return c.OK(view)
}

func (a *api) listResponses(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPageOf(c, p, func(r collections.ResponseRow) responseView {
		return responseView{
			r.ID, r.Type, r.ControlNumber, r.Applied, r.Unmatched(), r.CreatedBy, instantOf(r.CreatedAt), instantOf(r.FinishedAt),
		}
	})(collections.PageOfClaimResponses(c.App, p.Offset(), p.Size))
}

type unmatchedView struct {
	Segment       string        `json:"segment"`
	ControlNumber string        `json:"control_number"`
	Amount        billing.Cents `json:"amount"`
	Reason        string        `json:"reason"`
}

type responseDetail struct {
	ID            string          `json:"id"`
	Type          string          `json:"type"`
	ControlNumber string          `json:"control_number"`
	Applied       int             `json:"applied"`
	Unmatched     []unmatchedView `json:"unmatched"`
	CreatedBy     string          `json:"created_by"`
	CreatedAt     *string         `json:"created_at"`
	FinishedAt    *string         `json:"finished_at"`
}

func (a *api) readResponse(c *web.Call, r *collections.ClaimResponse) error {
	return c.OK(responseDetail{r.Id, r.Type(), r.ControlNumber(), r.Applied(), web.Map(r.Unmatched(), func(u collections.Unmatched) unmatchedView {
		return unmatchedView{u.Segment, u.ControlNumber, billing.Cents(u.AmountCents), u.Reason}
	}), r.CreatedBy(), instantOrNull(r.CreatedAt()), instantOrNull(r.FinishedAt())})
}
