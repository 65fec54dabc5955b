package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The states of a batch.
const (
	BatchCreated  = "created"
	BatchAccepted = "accepted"
	BatchPartly   = "partly_accepted"
	BatchRejected = "rejected"
)

// ClaimBatch is a file of claims as it left.
type ClaimBatch struct{ core.BaseRecordProxy }

// BatchDraft is a batch about to be stored.
type BatchDraft struct {
	ID, Number, Usage string
	Claims, Lines     int
	ChargeCents       int64
	File              phi.Text
	CreatedBy         string
}

// AddClaimBatch stores a batch.
func AddClaimBatch(tx core.App, d BatchDraft, now time.Time) error {
	_, err := store(tx, "store claim batch", ClaimBatches, map[string]any{
		"id": d.ID, "interchange_control_number": d.Number, "usage": d.Usage, "claims": d.Claims, "lines": d.Lines, "total_charge_cents": d.ChargeCents,
		"status": BatchCreated, "file": d.File.Reveal(), "created_by": d.CreatedBy, ColumnCreatedAt: Instant(now), ColumnUpdatedAt: Instant(now),
	})
	return err
}

// batchOutline is a batch without its file, which is opened only to be handed out.
var batchOutline = []string{"id", "interchange_control_number", "usage", "claims", "lines", "total_charge_cents", "status", "created_by", "created_at", "updated_at"}

// BatchRow is a batch without its file.
type BatchRow struct {
	ID          string `db:"id"`
	Number      string `db:"interchange_control_number"`
	Usage       string `db:"usage"`
	Claims      int    `db:"claims"`
	Lines       int    `db:"lines"`
	ChargeCents int64  `db:"total_charge_cents"`
	Status      string `db:"status"`
	CreatedBy   string `db:"created_by"`
	CreatedAt   string `db:"created_at"`
	UpdatedAt   string `db:"updated_at"`
}

// PageOfClaimBatches returns a page of batches, the newest first, and how many there are in all.
func PageOfClaimBatches(app core.App, offset, limit int) (page []BatchRow, total int, err error) {
	if total, err = queryValue[int](app, "count claim batches", "SELECT COUNT(*) FROM claim_batches", nil); err != nil {
		return nil, 0, err
	}
	err = app.DB().Select(batchOutline...).From(ClaimBatches).OrderBy("interchange_control_number DESC").Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list claim batches")
}

// FindBatchRow finds a batch without its file, by id.
func FindBatchRow(app core.App, id string) (row BatchRow, err error) {
	err = app.DB().Select(batchOutline...).From(ClaimBatches).Where(dbx.HashExp{"id": id}).One(&row)
	return row, wrap(err, "find claim batch")
}

// FindBatchByNumber finds a batch without its file, by the number of its interchange.
func FindBatchByNumber(app core.App, number string) (row BatchRow, err error) {
	err = app.DB().Select(batchOutline...).From(ClaimBatches).Where(dbx.HashExp{"interchange_control_number": number}).One(&row)
	return row, wrap(err, "find claim batch")
}

// BatchFile is the file of a batch.
func BatchFile(app core.App, id string) (phi.Text, error) {
	batch, err := findWhole[ClaimBatch](app, ClaimBatches, dbx.HashExp{"id": id})
	if err != nil {
		return "", err
	}
	return phi.Text(batch.GetString("file")), nil
}

// SetBatchStatus notes what became of a batch.
func SetBatchStatus(tx core.App, id, status string, now time.Time) error {
	return update(tx, "mark claim batch", ClaimBatches, dbx.Params{"status": status, ColumnUpdatedAt: Instant(now)}, dbx.HashExp{"id": id})
}

// ClaimLine is an entry as a line of a claim that left.
type ClaimLine struct {
	ID          string `db:"id"`
	BatchID     string `db:"batch"`
	EntryID     string `db:"billing_entry"`
	Claim       string `db:"claim_control_number"`
	Line        string `db:"line_control_number"`
	Frequency   string `db:"frequency"`
	ChargeCents int64  `db:"charge_cents"`
	Carried     bool   `db:"carried"`
}

// AddClaimLine stores a line, and how the entry is known from now on.
func AddClaimLine(tx core.App, l ClaimLine, now time.Time) error {
	_, err := store(tx, "store claim line", ClaimLines, map[string]any{
		"id": NewUUID(), "batch": l.BatchID, "billing_entry": l.EntryID, "claim_control_number": l.Claim, "line_control_number": l.Line,
		"frequency": l.Frequency, "charge_cents": l.ChargeCents, "carried": l.Carried,
	})
	if err != nil {
		return err
	}
	return update(tx, "mark billing entry", BillingEntries, dbx.Params{
		EntryClaimControlNumber: l.Claim, EntryBatch: l.BatchID, EntryRejection: nil, ColumnUpdatedAt: Instant(now),
	}, dbx.HashExp{"id": l.EntryID})
}

const claimLineColumns = "SELECT id, batch, billing_entry, claim_control_number, line_control_number, frequency, CAST(charge_cents AS INTEGER) AS charge_cents, carried FROM claim_lines "

// LinesOfClaim are the lines of a claim, in their order.
func LinesOfClaim(app core.App, control string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", claimLineColumns+"WHERE claim_control_number = {:claim} ORDER BY line_control_number", dbx.Params{"claim": control})
}

// LinesOfBatch are the lines of a batch, in their order.
func LinesOfBatch(app core.App, batchID string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", claimLineColumns+"WHERE batch = {:batch} ORDER BY line_control_number", dbx.Params{"batch": batchID})
}

// LinesOfEntries are all lines that some entries were, each entry's in the order in which they left; of batches with a usage, "" for all.
func LinesOfEntries(app core.App, ids []string, usage string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", claimLineColumns+`WHERE billing_entry`+those+`
		AND ({:usage} = '' OR batch IN (SELECT id FROM claim_batches WHERE usage = {:usage})) ORDER BY billing_entry, line_control_number`,
		dbx.Params{"ids": jsonList(ids), "usage": usage})
}

// EntriesOfClaims are the entries that stood on some claims.
func EntriesOfClaims(app core.App, claims []string) ([]string, error) {
	return queryColumn[string](app, "read claim lines", "SELECT DISTINCT billing_entry FROM claim_lines WHERE claim_control_number"+those, idsOf(claims))
}

// SetPayerControlNumber notes by which number the payer knows the claim of an entry, while the entry stands on that claim.
func SetPayerControlNumber(tx core.App, entryID, claim, number string, now time.Time) error {
	return update(tx, "mark billing entry", BillingEntries, dbx.Params{EntryPayerControlNumber: number, ColumnUpdatedAt: Instant(now)},
		dbx.HashExp{"id": entryID, EntryClaimControlNumber: claim})
}

// EntriesToSend are the entries of a month that wait for a batch: reviewed ones, and those that are to be replaced or voided and stood in none since. What
// was submitted by other ways has left; what was sent as a test alone has not where claims are sent for production. A patient's stand together, a code before
// the one that stands on it.
func EntriesToSend(app core.App, first, last, usage string) ([]string, error) {
	return queryColumn[string](app, "list entries to send", `SELECT id FROM billing_entries WHERE service_date BETWEEN {:first} AND {:last} AND payer != ''
		AND (lifecycle_status = 'reviewed' OR lifecycle_status IN ('submitted', 'void_requested') AND claim_batch = '' AND claim_frequency_code IN ('7', '8')
			OR {:usage} = 'P' AND lifecycle_status IN ('submitted', 'void_requested') AND claim_batch IN (SELECT id FROM claim_batches WHERE usage = 'T')) ORDER BY patient, cpt_code, id`,
		dbx.Params{"first": first, "last": last, "usage": usage})
}

// Unmatched is what of a response a person has to look at.
type Unmatched struct {
	Segment       string `json:"segment"`
	ControlNumber string `json:"control_number"`
	AmountCents   int64  `json:"amount_cents"`
	Reason        string `json:"reason"`
}

// ClaimResponse is a file that came back.
type ClaimResponse struct{ dated }

// ResponseDraft is a response about to be stored.
type ResponseDraft struct {
	Digest, Type, ControlNumber, CreatedBy string
	File                                   phi.Text // base64
}

// AddClaimResponse stores a response that is still to be applied.
func AddClaimResponse(tx core.App, d ResponseDraft, now time.Time) (*ClaimResponse, error) {
	record, err := store(tx, "store claim response", ClaimResponses, map[string]any{
		"id": NewUUID(), "digest": d.Digest, "type": d.Type, "control_number": d.ControlNumber, "file": d.File.Reveal(),
		"created_by": d.CreatedBy, ColumnCreatedAt: Instant(now),
	})
	if err != nil {
		return nil, err
	}
	return as[ClaimResponse](record), nil
}

// FindClaimResponse finds a response by id.
func FindClaimResponse(app core.App, id string) (*ClaimResponse, error) {
	return find[ClaimResponse](app, ClaimResponses, dbx.HashExp{"id": id})
}

// FindResponseByDigest finds a response by what the file holds.
func FindResponseByDigest(app core.App, digest string) (*ClaimResponse, error) {
	return find[ClaimResponse](app, ClaimResponses, dbx.HashExp{"digest": digest})
}

// ResponseRow is a response without its file, which is opened for nobody who only looks at the list.
type ResponseRow struct {
	ID            string `db:"id"`
	Type          string `db:"type"`
	ControlNumber string `db:"control_number"`
	Applied       int    `db:"applied"`
	CreatedBy     string `db:"created_by"`
	CreatedAt     string `db:"created_at"`
	FinishedAt    string `db:"finished_at"`
	Sealed        string `db:"unmatched"`
}

// Unmatched is how much a person has to look at.
func (r ResponseRow) Unmatched() int {
	var list []Unmatched
	if r.Sealed == "" {
		return 0
	}
	plain, err := OpenValue(r.Sealed, ClaimResponses, "unmatched", r.ID)
	if err != nil || json.Unmarshal([]byte(plain), &list) != nil {
		return 0
	}
	return len(list)
}

// PageOfClaimResponses returns a page of responses, the newest first, and how many there are in all.
func PageOfClaimResponses(app core.App, offset, limit int) (page []ResponseRow, total int, err error) {
	if total, err = queryValue[int](app, "count claim responses", "SELECT COUNT(*) FROM claim_responses", nil); err != nil {
		return nil, 0, err
	}
	err = app.DB().Select("id", "type", "control_number", "CAST(applied AS INTEGER) AS applied", "created_by", "created_at", "finished_at", "unmatched").
		From(ClaimResponses).OrderBy("created_at DESC", "id DESC").Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list claim responses")
}

// FinishClaimResponse notes what a response did.
func FinishClaimResponse(tx core.App, id string, applied int, unmatched []Unmatched, now time.Time) error {
	encoded, err := json.Marshal(append([]Unmatched{}, unmatched...))
	if err != nil {
		return wrap(err, "encode what is unmatched")
	}
	sealed, err := Seal(string(encoded), "claim_responses.unmatched", id)
	if err != nil {
		return wrap(err, "seal what is unmatched")
	}
	return update(tx, "finish claim response", ClaimResponses, dbx.Params{"applied": applied, "unmatched": sealed, "finished_at": Instant(now)}, dbx.HashExp{"id": id})
}

func (r *ClaimResponse) Type() string          { return r.GetString("type") }
func (r *ClaimResponse) ControlNumber() string { return r.GetString("control_number") }
func (r *ClaimResponse) Applied() int          { return r.GetInt("applied") }
func (r *ClaimResponse) CreatedBy() string     { return r.GetString("created_by") }
func (r *ClaimResponse) FinishedAt() time.Time { return instantOf(r, "finished_at") }

// Unmatched is what a person has to look at.
func (r *ClaimResponse) Unmatched() (list []Unmatched) {
	if json.Unmarshal([]byte(r.GetString("unmatched")), &list) != nil {
		return nil
	}
	return list
}

// BatchAnswers are the lines of a batch by what came of them until now, each in one number: sent back by clearinghouse or payer and not sent
// since, paid, denied, taken back, left again in a later batch, and all others. Lines that stand on a replacement only because they stood on the
// claim before are in none.
type BatchAnswers struct {
	Batch     string `db:"batch"`
	SentBack  int    `db:"sent_back"`
	Paid      int    `db:"paid"`
	Denied    int    `db:"denied"`
	Voided    int    `db:"voided"`
	SentAgain int    `db:"sent_again"`
	Open      int    `db:"open"`
}

// AnswersOfBatches are the answers to some batches, by batch.
func AnswersOfBatches(app core.App, ids []string) (map[string]BatchAnswers, error) {
	rows, err := queryAll[BatchAnswers](app, "count answers to claims", `SELECT batch, SUM(came = 'sent_back') AS sent_back, SUM(came = 'paid') AS paid,
			SUM(came = 'denied') AS denied, SUM(came = 'voided') AS voided, SUM(came = 'sent_again') AS sent_again, SUM(came = 'open') AS open
		FROM (SELECT l.batch, CASE
				WHEN e.claim_control_number != l.claim_control_number THEN 'sent_again'
				WHEN e.rejection LIKE '{%' THEN 'sent_back'
				WHEN e.lifecycle_status IN ('paid', 'refund_due', 'refunded') THEN 'paid'
				WHEN e.lifecycle_status IN ('denied', 'appealed') THEN 'denied'
				WHEN e.lifecycle_status = 'voided' THEN 'voided'
				ELSE 'open' END AS came
			FROM claim_lines l JOIN billing_entries e ON e.id = l.billing_entry WHERE l.carried = FALSE AND l.batch`+those+`) GROUP BY batch`, idsOf(ids))
	if err != nil {
		return nil, err
	}
	answers := make(map[string]BatchAnswers, len(rows))
	for _, row := range rows {
		answers[row.Batch] = row
	}
	return answers, nil
}
