package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Unmatched is a part of a response that a person must check.
type Unmatched struct {
	Segment       string `json:"segment"`
	ControlNumber string `json:"control_number"`
	AmountCents   int64  `json:"amount_cents"`
	Reason        string `json:"reason"`
}

// ClaimResponse is a file from the clearinghouse or payer.
type ClaimResponse struct{ datedRecord }

// ResponseDraft is a response to store.
type ResponseDraft struct {
	Digest, Type, ControlNumber, CreatedBy string
	File                                   phi.Text // base64
}

// AddClaimResponse stores a response before it is applied.
func AddClaimResponse(tx core.App, d ResponseDraft, now time.Time) (*ClaimResponse, error) {
	record, err := store(tx, "store claim response", ClaimResponses, map[string]any{
		"id": NewUUID(), "digest": d.Digest, "type": d.Type, "control_number": d.ControlNumber, "file": d.File.Reveal(),
		"created_by": d.CreatedBy, ColumnCreatedAt: FormatInstant(now),
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

// FindResponseByDigest finds a response by the digest of its file.
func FindResponseByDigest(app core.App, digest string) (*ClaimResponse, error) {
	return find[ClaimResponse](app, ClaimResponses, dbx.HashExp{"digest": digest})
}

// ResponseRow is a response without its file, which a list does not decrypt.
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

// Unmatched counts the unmatched parts.
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

// PageOfClaimResponses returns a page of responses, newest first, and the total.
func PageOfClaimResponses(app core.App, offset, limit int) (page []ResponseRow, total int, err error) {
	columns := []string{"id", "type", "control_number", "CAST(applied AS INTEGER) AS applied", "created_by", "created_at", "finished_at", "unmatched"}
	return pageOfRows[ResponseRow](app, ClaimResponses, columns, nil, []string{"created_at DESC", "id DESC"}, offset, limit)
}

// FinishClaimResponse stores the result of applying a response.
func FinishClaimResponse(tx core.App, id string, applied int, unmatched []Unmatched, now time.Time) error {
	encoded, err := json.Marshal(append([]Unmatched{}, unmatched...))
	if err != nil {
		return wrap(err, "encode unmatched segments")
	}
	sealed, err := Seal(string(encoded), "claim_responses.unmatched", id)
	if err != nil {
		return wrap(err, "seal unmatched segments")
	}
	return update(tx, "finish claim response", ClaimResponses, dbx.Params{"applied": applied, "unmatched": sealed, "finished_at": FormatInstant(now)}, dbx.HashExp{"id": id})
}

func (r *ClaimResponse) Type() string          { return r.GetString("type") }
func (r *ClaimResponse) ControlNumber() string { return r.GetString("control_number") }
func (r *ClaimResponse) Applied() int          { return r.GetInt("applied") }
func (r *ClaimResponse) CreatedBy() string     { return r.GetString("created_by") }
func (r *ClaimResponse) FinishedAt() time.Time { return instantOf(r, "finished_at") }

// Unmatched returns the unmatched parts.
func (r *ClaimResponse) Unmatched() (list []Unmatched) {
	if json.Unmarshal([]byte(r.GetString("unmatched")), &list) != nil {
		return nil
	}
	return list
}
