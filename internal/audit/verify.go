package audit

import (
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Result is what a walk along the chain found.
type Result struct {
	Valid bool
	// Checked counts the rows that were looked at, the invalid one included.
	Checked int64
	// FirstInvalidID is the number of the first row that was changed, moved or removed.
	FirstInvalidID *int64
	// HeadHash is the hash of the last row when the walk began; "" for an empty log.
	HeadHash string
}

// pageSize keeps a walk from holding a read open for long.
const pageSize = 1000

// Verify walks the whole log up to where it ended when the walk began, and stops at the first row that does not fit.
// progress, when not nil, hears after each page how many of how many rows were checked.
func Verify(app core.App, progress func(checked, total int64)) (Result, error) {
	headID, headHash, err := collections.AuditHead(app)
	if err != nil {
		return Result{}, err
	}
	result := Result{Valid: true, HeadHash: headHash}
	afterID, previous := "", firstPrevious
	for afterID < headID {
		rows, err := collections.AuditRows(app, afterID, headID, pageSize)
		if err != nil {
			return Result{}, err
		}
		for _, row := range rows {
			result.Checked++
			if number := result.Checked; !fits(row, number, previous) {
				result.Valid, result.FirstInvalidID = false, &number
				return result, nil
			}
			afterID, previous = row.ID, row.Hash
		}
		if len(rows) == 0 {
			return Result{}, errors.New("audit: the last row vanished during the walk")
		}
		if progress != nil {
			progress(result.Checked, collections.Number(headID))
		}
	}
	return result, nil
}

// fits reports whether a row is the numbered one, follows the previous one, and is as it was written.
func fits(row collections.AuditRow, number int64, previous string) bool {
	return row.ID == collections.NumberID(number) && row.PrevHash == previous && row.Hash == rowHash(previous, row)
}
