package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// States of a batch.
const (
	BatchCreated  = "created"
	BatchAccepted = "accepted"
	BatchPartly   = "partly_accepted"
	BatchRejected = "rejected"
)

// ClaimBatch is one file of claims (837P) as sent.
type ClaimBatch struct{ core.BaseRecordProxy }

// BatchDraft is a batch to store.
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
		"status": BatchCreated, "file": d.File.Reveal(), "created_by": d.CreatedBy, ColumnCreatedAt: FormatInstant(now), ColumnUpdatedAt: FormatInstant(now),
	})
	return err
}

// batchColumns are the columns without the file, which is decrypted only for a download.
var batchColumns = []string{"id", "interchange_control_number", "usage", "claims", "lines", "total_charge_cents", "status", "created_by", "created_at", "updated_at"}

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

// PageOfClaimBatches returns a page of batches, newest first, and the total.
func PageOfClaimBatches(app core.App, offset, limit int) (page []BatchRow, total int, err error) {
	return pageOfRows[BatchRow](app, ClaimBatches, batchColumns, nil, []string{"interchange_control_number DESC"}, offset, limit)
}

// FindBatchRow finds a batch by id, without its file.
func FindBatchRow(app core.App, id string) (row BatchRow, err error) {
	err = app.DB().Select(batchColumns...).From(ClaimBatches).Where(dbx.HashExp{"id": id}).One(&row)
	return row, wrap(err, "find claim batch")
}

// FindBatchByNumber finds a batch by its interchange control number, without its file.
func FindBatchByNumber(app core.App, number string) (row BatchRow, err error) {
	err = app.DB().Select(batchColumns...).From(ClaimBatches).Where(dbx.HashExp{"interchange_control_number": number}).One(&row)
	return row, wrap(err, "find claim batch")
}

// BatchFile returns the file of a batch.
func BatchFile(app core.App, id string) (phi.Text, error) {
	batch, err := findReadable[ClaimBatch](app, ClaimBatches, dbx.HashExp{"id": id})
	if err != nil {
		return "", err
	}
	return phi.Text(batch.GetString("file")), nil
}

// SetBatchStatus sets the status of a batch.
func SetBatchStatus(tx core.App, id, status string, now time.Time) error {
	return update(tx, "mark claim batch", ClaimBatches, dbx.Params{"status": status, ColumnUpdatedAt: FormatInstant(now)}, dbx.HashExp{"id": id})
}

// ClaimLine is one entry as a service line of a sent claim.
type ClaimLine struct {
	ID          string `db:"id"`
	BatchID     string `db:"batch"`
	EntryID     string `db:"billing_entry"`
	Claim       string `db:"claim_control_number"`
	Line        string `db:"line_control_number"`
	Frequency   string `db:"frequency"`
	ChargeCents int64  `db:"charge_cents"`
	Carried     bool   `db:"carried"`
	Sequence    string `db:"payer_sequence"` // S on a claim to the second payer
	CPTCode     string `db:"cpt_code"`       // only of [LinesOfClaim]
	ServiceDate string `db:"service_date"`   // only of [LinesOfClaim]
}

// SecondarySequence marks a claim to the second payer. Source: ASC X12N 005010X222A1 (837P), SBR01.
const SecondarySequence = "S"

// IsSecondary reports whether the line is on a claim to the second payer.
func (l ClaimLine) IsSecondary() bool { return l.Sequence == SecondarySequence }

// AddClaimLine stores a line and its claim control number on the entry, which keeps that of the first payer's claim.
func AddClaimLine(tx core.App, l ClaimLine, now time.Time) error {
	_, err := store(tx, "store claim line", ClaimLines, map[string]any{
		"id": NewUUID(), "batch": l.BatchID, "billing_entry": l.EntryID, "claim_control_number": l.Claim, "line_control_number": l.Line,
		"frequency": l.Frequency, "charge_cents": l.ChargeCents, "carried": l.Carried, "payer_sequence": l.Sequence,
	})
	if err != nil || l.IsSecondary() {
		return err
	}
	return update(tx, "mark billing entry", BillingEntries, dbx.Params{
		EntryClaimControlNumber: l.Claim, EntryBatch: l.BatchID, EntryRejection: nil, EntryRejectionDetails: "", ColumnUpdatedAt: FormatInstant(now),
	}, dbx.HashExp{"id": l.EntryID})
}

const (
	lineColumns      = "SELECT id, batch, billing_entry, claim_control_number, line_control_number, frequency, CAST(charge_cents AS INTEGER) AS charge_cents, carried, payer_sequence"
	claimLineColumns = lineColumns + " FROM claim_lines "
	serviceColumns   = `, COALESCE((SELECT cpt_code FROM billing_entries e WHERE e.id = billing_entry), '') AS cpt_code,
		COALESCE((SELECT service_date FROM billing_entries e WHERE e.id = billing_entry), '') AS service_date`
)

// LinesOfClaim returns the lines of a claim with their services, in order; its number may come back in lower case.
func LinesOfClaim(app core.App, control string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", lineColumns+serviceColumns+" FROM claim_lines WHERE claim_control_number = {:claim} ORDER BY line_control_number",
		dbx.Params{"claim": strings.ToUpper(control)})
}

// LineOfEntry returns an entry as the only line of a claim with its claim id as number, as other software sends it from an export; none if there is no
// such entry. It is in no batch.
func LineOfEntry(app core.App, claimID string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "find an entry by its claim id", `SELECT id, '' AS batch, id AS billing_entry, claim_control_number, claim_id AS line_control_number, '' AS frequency,
		CAST(charge_cents AS INTEGER) AS charge_cents, FALSE AS carried, '' AS payer_sequence, cpt_code, service_date FROM billing_entries WHERE claim_id = {:claim}`,
		dbx.Params{"claim": strings.ToUpper(claimID)})
}

// LinesOfBatch returns the lines of a batch, in order.
func LinesOfBatch(app core.App, batchID string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", claimLineColumns+"WHERE batch = {:batch} ORDER BY line_control_number", dbx.Params{"batch": batchID})
}

// WasSentToSecondary reports whether an entry is on a claim to the second payer, with usage P on one that is no test.
func WasSentToSecondary(app core.App, entryID, usage string) (bool, error) {
	return queryValue[bool](app, "look for a claim to the second payer", `SELECT EXISTS (SELECT 1 FROM claim_lines WHERE billing_entry = {:id} AND payer_sequence = 'S'
		AND ({:usage} != 'P' OR batch IN (SELECT id FROM claim_batches WHERE usage = 'P')))`, dbx.Params{"id": entryID, "usage": usage})
}

// NewestSecondaryClaim returns the control number of the last claim of an entry to the second payer; "" for none.
func NewestSecondaryClaim(app core.App, entryID string) (string, error) {
	return queryValue[string](app, "find the last claim to the second payer", `SELECT COALESCE((SELECT claim_control_number FROM claim_lines
		WHERE billing_entry = {:id} AND payer_sequence = 'S' ORDER BY line_control_number DESC LIMIT 1), '')`, dbx.Params{"id": entryID})
}

// LinesOfEntries returns all lines of entries on claims to the first payer, in the order in which they were sent; usage narrows to batches of one usage unless "".
func LinesOfEntries(app core.App, ids []string, usage string) ([]ClaimLine, error) {
	return queryAll[ClaimLine](app, "read claim lines", claimLineColumns+`WHERE billing_entry`+inIDs+`
		AND payer_sequence = '' AND ({:usage} = '' OR batch IN (SELECT id FROM claim_batches WHERE usage = {:usage})) ORDER BY billing_entry, line_control_number`,
		dbx.Params{"ids": jsonList(ids), "usage": usage})
}

// EntriesOfClaims returns the entries with a line on the claims.
func EntriesOfClaims(app core.App, claims []string) ([]string, error) {
	return queryColumn[string](app, "read claim lines", "SELECT DISTINCT billing_entry FROM claim_lines WHERE claim_control_number"+inIDs, idParams(claims))
}

// SetPayerControlNumber stores the payer's number of a claim on an entry, while the entry is on that claim.
func SetPayerControlNumber(tx core.App, entryID, claim, number string, now time.Time) error {
	return update(tx, "mark billing entry", BillingEntries, dbx.Params{EntryPayerControlNumber: number, ColumnUpdatedAt: FormatInstant(now)},
		dbx.HashExp{"id": entryID, EntryClaimControlNumber: claim})
}

// EntriesToSubmit returns the entries of a month that are ready for a batch: reviewed ones, and replacements and voids that are in no batch
// yet. Entries submitted by other means are excluded. Entries sent only as a test are included when claims are sent for production. A
// patient's entries are together, and a base code comes before its add-on.
func EntriesToSubmit(app core.App, first, last, usage string) ([]string, error) {
	return queryColumn[string](app, "list entries to submit", `SELECT id FROM billing_entries WHERE service_date BETWEEN {:first} AND {:last} AND payer != ''
		AND (lifecycle_status = 'reviewed' OR claim_batch = '' AND (lifecycle_status IN ('submitted', 'void_requested') AND claim_frequency_code != ''
				OR lifecycle_status = 'refund_due' AND claim_frequency_code = '8')
			OR {:usage} = 'P' AND lifecycle_status IN ('submitted', 'void_requested') AND claim_batch IN (SELECT id FROM claim_batches WHERE usage = 'T')) ORDER BY patient, cpt_code, id`,
		dbx.Params{"first": first, "last": last, "usage": usage})
}

// BatchOutcomes counts the lines of a batch by their current outcome, each once: rejected and not sent since, paid, denied, voided, sent again
// in a later batch, or open. Lines carried over from a replaced claim are not counted.
type BatchOutcomes struct {
	Batch    string `db:"batch"`
	Rejected int    `db:"sent_back"`
	Paid     int    `db:"paid"`
	Denied   int    `db:"denied"`
	Voided   int    `db:"voided"`
	Resent   int    `db:"sent_again"`
	Open     int    `db:"open"`
}

// OutcomesOfBatches returns the outcomes of batches, by batch.
func OutcomesOfBatches(app core.App, ids []string) (map[string]BatchOutcomes, error) {
	rows, err := queryAll[BatchOutcomes](app, "count outcomes of claims", `SELECT batch, SUM(came = 'sent_back') AS sent_back, SUM(came = 'paid') AS paid,
			SUM(came = 'denied') AS denied, SUM(came = 'voided') AS voided, SUM(came = 'sent_again') AS sent_again, SUM(came = 'open') AS open
		FROM (SELECT l.batch, CASE
				WHEN l.payer_sequence = 'S' AND EXISTS (SELECT 1 FROM claim_lines n WHERE n.billing_entry = l.billing_entry AND n.payer_sequence = 'S'
					AND n.line_control_number > l.line_control_number) THEN 'sent_again'
				WHEN l.payer_sequence = 'S' THEN CASE e.secondary_status WHEN 'due' THEN 'sent_back' WHEN 'submitted' THEN 'open' ELSE e.secondary_status END
				WHEN e.claim_control_number != l.claim_control_number THEN 'sent_again'
				WHEN e.rejection LIKE '{%' THEN 'sent_back'
				WHEN e.lifecycle_status IN ('paid', 'refund_due', 'refunded') THEN 'paid'
				WHEN e.lifecycle_status IN ('denied', 'appealed') THEN 'denied'
				WHEN e.lifecycle_status = 'voided' THEN 'voided'
				ELSE 'open' END AS came
			FROM claim_lines l JOIN billing_entries e ON e.id = l.billing_entry WHERE l.carried = FALSE AND l.batch`+inIDs+`) GROUP BY batch`, idParams(ids))
	if err != nil {
		return nil, err
	}
	answers := make(map[string]BatchOutcomes, len(rows))
	for _, row := range rows {
		answers[row.Batch] = row
	}
	return answers, nil
}
