package collections

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Statuses of a remittance: posted in full, with items for a person, or closed by a person.
const (
	RemittanceBalanced = "balanced"
	RemittanceOpen     = "open"
	RemittanceClosed   = "closed"
)

// RemittanceItem is a part of a payer's payment that a person resolves: a claim that was not posted, or a provider adjustment.
type RemittanceItem struct {
	Segment            string   `json:"segment"` // CLP, PLB, or BPR for a difference of the sums
	ControlNumber      string   `json:"control_number"`
	PayerControlNumber string   `json:"payer_control_number"`
	Code               string   `json:"code"` // CLP02 or PLB03-1
	AmountCents        int64    `json:"amount_cents"`
	Reason             string   `json:"reason"`
	Detail             string   `json:"detail,omitempty"` // what exactly cannot be read
	EntryIDs           []string `json:"entry_ids"`
	ClosedAt           string   `json:"closed_at"`
	ClosedBy           string   `json:"closed_by"`
	Notes              string   `json:"notes"`
}

// IsSame reports whether two items are the same part of a payment: the reason may be another after a second import.
func (i RemittanceItem) IsSame(b RemittanceItem) bool {
	return i.Segment == b.Segment && i.ControlNumber == b.ControlNumber && i.PayerControlNumber == b.PayerControlNumber && i.Code == b.Code && i.AmountCents == b.AmountCents
}

// RemittanceDraft is a remittance to store.
type RemittanceDraft struct {
	ResponseID, Digest, Payer, Trace, Date, Method string
	PaymentCents                                   int64
}

// RemittanceRow is a payment of a payer with its items, of which the sealed form is opened by [RemittanceRow.Items].
type RemittanceRow struct {
	ID           string `db:"id"`
	ResponseID   string `db:"response"`
	Digest       string `db:"digest"` // of the last of its files
	Payer        string `db:"payer"`
	Trace        string `db:"trace_number"`
	PaymentCents int64  `db:"payment_cents"`
	Date         string `db:"payment_date"`
	Method       string `db:"method"`
	Status       string `db:"status"`
	Sealed       string `db:"items"`
	SealedNotes  string `db:"notes"`
	ClosedBy     string `db:"closed_by"`
	ClosedAt     string `db:"closed_at"`
	CreatedAt    string `db:"created_at"`
}

var remittanceColumns = []string{
	"id", "response", "digest", "payer", "trace_number", "CAST(payment_cents AS INTEGER) AS payment_cents", "payment_date", "method", "status", "items", "notes",
	"closed_by", "closed_at", "created_at",
}

// AddRemittance stores a payment as open before its claims are posted. It returns the stored one if the payment was imported before.
func AddRemittance(app core.App, d RemittanceDraft, now time.Time) (row RemittanceRow, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		row, err = remittanceWhere(tx, d.hasDigest())
		if !IsNotFound(err) {
			return err
		}
		_, err := store(tx, "store remittance", Remittances, map[string]any{
			"id": NewUUID(), "response": d.ResponseID, "digest": d.Digest, "payer": d.Payer, "trace_number": d.Trace, "payment_cents": d.PaymentCents,
			"payment_date": d.Date, "method": d.Method, "status": RemittanceOpen, ColumnCreatedAt: FormatInstant(now), ColumnUpdatedAt: FormatInstant(now),
		})
		if err == nil {
			row, err = remittanceWhere(tx, dbx.HashExp{"digest": d.Digest})
		}
		return err
	})
	return row, err
}

// hasDigest selects the remittance of a file: its last one, or one that a later file corrected.
func (d RemittanceDraft) hasDigest() dbx.Expression {
	return dbx.NewExp("digest = {:digest} OR instr(former_digests, {:digest}) > 0", dbx.Params{"digest": d.Digest})
}

func remittanceWhere(app core.App, where dbx.Expression) (row RemittanceRow, err error) {
	err = app.DB().Select(remittanceColumns...).From(Remittances).Where(where).One(&row)
	return row, wrap(err, "find remittance")
}

// OpenRemittancesOf returns the open remittances of a payer's payment: with its number, amount and date; none if one has its digest.
func OpenRemittancesOf(app core.App, d RemittanceDraft) (list []RemittanceRow, err error) {
	if _, err = remittanceWhere(app, d.hasDigest()); !IsNotFound(err) {
		return nil, err
	}
	err = app.DB().Select(remittanceColumns...).From(Remittances).Where(dbx.HashExp{
		"status": RemittanceOpen, "payer": d.Payer, "trace_number": d.Trace, "payment_cents": d.PaymentCents, "payment_date": d.Date,
	}).OrderBy("id").All(&list)
	return list, wrap(err, "find remittances of a payment")
}

// CorrectRemittance gives a stored payment the digest of the file that corrects it, and keeps the one before.
func CorrectRemittance(app core.App, id, digest string, now time.Time) error {
	return update(app, "correct a remittance", Remittances, dbx.Params{
		"former_digests": dbx.NewExp("trim(COALESCE(former_digests, '') || ' ' || digest)"), "digest": digest, ColumnUpdatedAt: FormatInstant(now),
	}, dbx.HashExp{"id": id})
}

// RemittancesOfResponse returns the remittances that a response file brought first, in the order of the file.
func RemittancesOfResponse(app core.App, responseID string) ([]string, error) {
	return queryColumn[string](app, "read the remittances of a response", "SELECT id FROM remittances WHERE response = {:id} ORDER BY id", dbx.Params{"id": responseID})
}

// FindRemittance finds a remittance by id.
func FindRemittance(app core.App, id string) (RemittanceRow, error) {
	return remittanceWhere(app, dbx.HashExp{"id": id})
}

// PageOfRemittances returns a page of remittances, newest first, and the total; of one status unless "".
func PageOfRemittances(app core.App, status string, offset, limit int) (page []RemittanceRow, total int, err error) {
	var where []dbx.Expression
	if status != "" {
		where = append(where, dbx.HashExp{"status": status})
	}
	return pageOfRows[RemittanceRow](app, Remittances, remittanceColumns, where, []string{"id DESC"}, offset, limit)
}

// ItemsOfPayer returns the items of a payer's remittances that have a reason, open or closed, by remittance.
func ItemsOfPayer(app core.App, payer, reason string) (map[string][]RemittanceItem, error) {
	var rows []RemittanceRow
	err := app.DB().Select(remittanceColumns...).From(Remittances).Where(dbx.HashExp{"payer": payer}).
		AndWhere(dbx.Not(dbx.HashExp{"status": RemittanceBalanced})).All(&rows) // a balanced one has none
	if err != nil {
		return nil, wrap(err, "find remittances of a payer")
	}
	found := map[string][]RemittanceItem{}
	for _, row := range rows {
		items, err := row.Items()
		if err != nil {
			return nil, err
		}
		found[row.ID] = ItemsWithReason(items, reason)
	}
	return found, nil
}

// ItemsWithReason returns the items that have a reason.
func ItemsWithReason(items []RemittanceItem, reason string) []RemittanceItem {
	return slices.DeleteFunc(slices.Clone(items), func(item RemittanceItem) bool { return item.Reason != reason })
}

// OpenRemittances counts the remittances that a person has to resolve.
func OpenRemittances(app core.App) (int, error) {
	return queryValue[int](app, "count open remittances", "SELECT COUNT(*) FROM remittances WHERE status = 'open'", nil)
}

// ImportInterrupted is the reason of the only item of a payment before its import has finished: what was not posted so far.
const ImportInterrupted = "import_interrupted"

// Items returns the items. While an import has not finished there is one, with the whole payment as its amount.
func (r RemittanceRow) Items() (list []RemittanceItem, err error) {
	if r.Sealed == "" {
		return []RemittanceItem{{Segment: "BPR", ControlNumber: r.Trace, AmountCents: r.PaymentCents, Reason: ImportInterrupted}}, nil
	}
	plain, err := OpenValue(r.Sealed, Remittances, "items", r.ID)
	if err != nil {
		return nil, wrap(err, "open items of a remittance")
	}
	return list, wrap(json.Unmarshal([]byte(plain), &list), "read items of a remittance")
}

// Notes returns why a person closed the remittance.
func (r RemittanceRow) Notes() (phi.Text, error) {
	if r.SealedNotes == "" {
		return "", nil
	}
	plain, err := OpenValue(r.SealedNotes, Remittances, "notes", r.ID)
	return phi.Text(plain), wrap(err, "open notes of a remittance")
}

// FinishRemittance stores the items of a payment that was imported. Items that a person closed before, or during the import, stay closed.
func FinishRemittance(app core.App, id string, items []RemittanceItem, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		row, err := FindRemittance(tx, id)
		if err != nil {
			return err
		}
		before, err := row.Items()
		if err != nil {
			return err
		}
		for i, item := range items {
			if at := slices.IndexFunc(before, item.IsSame); at >= 0 {
				items[i].ClosedAt, items[i].ClosedBy, items[i].Notes = before[at].ClosedAt, before[at].ClosedBy, before[at].Notes
				before = slices.Delete(before, at, at+1)
			}
		}
		return storeItems(tx, row, items, nil, now)
	})
}

// storeItems stores the items and the status that follows from them.
func storeItems(tx core.App, row RemittanceRow, items []RemittanceItem, more dbx.Params, now time.Time) error {
	status := RemittanceBalanced
	for _, item := range items {
		if item.ClosedAt == "" {
			status = RemittanceOpen
			break
		}
		status = RemittanceClosed
	}
	encoded, err := json.Marshal(append([]RemittanceItem{}, items...))
	if err != nil {
		return wrap(err, "encode items of a remittance")
	}
	sealed, err := Seal(string(encoded), "remittances.items", row.ID)
	if err != nil {
		return wrap(err, "seal items of a remittance")
	}
	changes := dbx.Params{"items": sealed, "status": status, ColumnUpdatedAt: FormatInstant(now)}
	for column, value := range more {
		changes[column] = value
	}
	return update(tx, "store items of a remittance", Remittances, changes, dbx.HashExp{"id": row.ID})
}

// PostedOf returns what was posted of remittances, by id: payments less reversals and refunds.
func PostedOf(app core.App, ids []string) (map[string]int64, error) {
	rows, err := queryAll[struct {
		ID    string `db:"remittance"`
		Cents int64  `db:"cents"`
	}](app, "sum posted payments", `SELECT remittance, CAST(SUM(CASE kind WHEN 'refund' THEN -amount_cents ELSE amount_cents END) AS INTEGER) AS cents
		FROM payments WHERE remittance != '' AND remittance`+inIDs+` GROUP BY remittance`, idParams(ids))
	if err != nil {
		return nil, err
	}
	posted := make(map[string]int64, len(rows))
	for _, row := range rows {
		posted[row.ID] = row.Cents
	}
	return posted, nil
}

// CloseItems stores items that a person closed; isWhole if the remittance was closed as a whole, with its notes.
func CloseItems(tx core.App, row RemittanceRow, items []RemittanceItem, isWhole bool, notes, by string, now time.Time) error {
	var more dbx.Params
	if isWhole {
		sealed, err := Seal(notes, "remittances.notes", row.ID)
		if err != nil {
			return wrap(err, "seal notes of a remittance")
		}
		more = dbx.Params{"notes": sealed, "closed_by": by, "closed_at": FormatInstant(now)}
	}
	return storeItems(tx, row, items, more, now)
}

// PostedLine is what a remittance posted to one entry.
type PostedLine struct {
	EntryID    string `db:"billing_entry"`
	ClaimID    string `db:"claim_id"`
	CPTCode    string `db:"cpt_code"`
	Claim      string `db:"claim_control_number"`
	PayerClaim string `db:"payer_control_number"`
	Kind       string `db:"kind"`
	Cents      int64  `db:"cents"`
	PaidCode   string `db:"paid_code"` // that the payer decided on instead of ours
	IsEarly    bool   `db:"is_early"`  // paid before the service
}

// PostedLines returns what a remittance posted, in the order of posting.
func PostedLines(app core.App, id string) ([]PostedLine, error) {
	return queryAll[PostedLine](app, "read posted payments", `SELECT p.billing_entry, e.claim_id, e.cpt_code, e.claim_control_number, e.payer_control_number, p.kind,
			CAST(CASE p.kind WHEN 'refund' THEN -p.amount_cents ELSE p.amount_cents END AS INTEGER) AS cents,
			COALESCE(p.paid_code, '') AS paid_code, p.kind = 'payment' AND p.date != '' AND p.date < e.service_date AS is_early
		FROM payments p JOIN billing_entries e ON e.id = p.billing_entry WHERE p.remittance != '' AND p.remittance = {:id} ORDER BY p.id`, dbx.Params{"id": id})
}
