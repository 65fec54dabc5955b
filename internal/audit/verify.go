package audit

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Problem is the reason why a trail is invalid.
type Problem string

// The problems. A state problem is reported before a row problem, and a row problem before a missing trigger.
const (
	// RowChanged: a row was changed, moved, or not written by Vigil.
	RowChanged Problem = "row_changed"
	// RowsMissing: a row is missing, in the middle or at the end.
	RowsMissing Problem = "rows_missing"
	// StateMissing: the state was removed, so no row can be verified.
	StateMissing Problem = "state_missing"
	// StateForged: the state was not written by Vigil.
	StateForged Problem = "state_forged"
	// TriggerMissing: a trigger that protects the trail is missing or changed; the rows are valid.
	TriggerMissing Problem = "guard_missing"
)

// Result is the result of a verification.
type Result struct {
	Valid bool
	// Checked is the number of rows read, including the invalid one.
	Checked int64
	// FirstInvalidID is the number of the first row that was changed, moved or removed, or that cannot be verified. If a trigger is missing, it is
	// the number of the next row.
	FirstInvalidID *int64
	// HeadHash is the hash of the last row at the start of the verification; "" for an empty trail.
	HeadHash string
	Problem  Problem // "" for a valid trail
}

func (r Result) invalidAt(at int64, problem Problem) Result {
	r.Valid, r.FirstInvalidID, r.Problem = false, &at, problem
	return r
}

// pageSize bounds the duration of one read transaction.
const pageSize = 1000

// Verify checks all rows that existed when it started, and stops at the first invalid one. It calls progress, if not nil,
// after each page with the checked and the total rows.
func Verify(app core.App, progress func(checked, total int64)) (Result, error) {
	k, err := loadKeys()
	if err != nil {
		return Result{}, err
	}
	end, problem, err := readEnd(app, k)
	if err != nil {
		return Result{}, err
	}
	result := Result{Valid: true, HeadHash: end.Hash}
	if problem != "" {
		return result.invalidAt(1, problem), nil
	}
	result, err = verifyRows(app, k, end, result, progress)
	if err != nil || !result.Valid {
		return result, err
	}
	err = collections.CheckAuditTriggers(app)
	if errors.Is(err, collections.ErrAuditTriggers) {
		return result.invalidAt(result.Checked+1, TriggerMissing), nil
	}
	return result, err
}

// readEnd returns the end of the trail and the problem of its state.
func readEnd(app core.App, k keys) (collections.AuditEnd, Problem, error) {
	hasState, err := collections.HasAuditState(app)
	if err != nil {
		return collections.AuditEnd{}, "", err
	}
	read := collections.ReadAuditEndWithoutState
	if hasState {
		read = collections.ReadAuditEnd
	}
	end, err := read(app)
	switch {
	case err != nil || k.hasValidSeal(end):
		return end, "", err
	case end.HasState:
		return end, StateForged, nil
	}
	legitimate, err := mayLackState(app)
	if err != nil || !legitimate {
		return end, StateMissing, err
	}
	return unkeyed(end), "", nil
}

func verifyRows(app core.App, k keys, end collections.AuditEnd, result Result, progress func(checked, total int64)) (Result, error) {
	afterID, previous := "", firstPrevious
	for afterID < end.ID {
		rows, err := collections.AuditRows(app, afterID, end.ID, pageSize)
		if err != nil {
			return Result{}, err
		}
		for _, row := range rows {
			result.Checked++
			number := result.Checked
			if number <= end.Entries && row.Number() > number {
				return result.invalidAt(number, RowsMissing), nil
			}
			if number > end.Entries || !isIntact(k, end.AuditState, row, number, previous) {
				return result.invalidAt(number, RowChanged), nil
			}
			afterID, previous = row.ID, row.Hash
		}
		if len(rows) == 0 {
			return Result{}, errors.New("audit: the last row was removed during the verification")
		}
		if progress != nil {
			progress(result.Checked, collections.Number(end.ID))
		}
	}
	if result.Checked < end.Entries {
		return result.invalidAt(result.Checked+1, RowsMissing), nil
	}
	return result, nil
}

// isIntact reports whether a row has the expected number, follows the previous row, and is unchanged. Rows of versions without a key have a
// plain hash, later rows a keyed one.
func isIntact(k keys, s collections.AuditState, row collections.AuditRow, number int64, previous string) bool {
	with := sha256.New()
	if number > s.Unkeyed {
		with = k.row
	}
	if number == s.Unkeyed && row.Hash != s.UnkeyedHead || number == s.Entries && row.Hash != s.Head {
		return false
	}
	return row.ID == collections.NumberID(number) && row.PrevHash == previous && hmac.Equal([]byte(row.Hash), []byte(rowHash(with, previous, row)))
}

// VerifyAgainstHead verifies the chain and compares it with the last head in a file, which should be on another system. A chain without that row
// is invalid from its first missing row, even if it is consistent in itself. "" means no file. Source: docs/decisions/security.md, "Hash chain".
func VerifyAgainstHead(app core.App, path string, progress func(checked, total int64)) (Result, error) {
	result, err := Verify(app, progress)
	if err != nil || !result.Valid || path == "" {
		return result, err
	}
	return compareHead(app, path, result)
}

// VerifyAndAppendHead calls VerifyAgainstHead and, if the chain is valid, appends its head to the file: a line with time, row number and hash.
func VerifyAndAppendHead(app core.App, path string, now time.Time) (Result, error) {
	result, err := VerifyAgainstHead(app, path, nil)
	if err != nil || !result.Valid || path == "" || result.Checked == 0 {
		return result, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the operator configures the path
	if err != nil {
		return result, fmt.Errorf("open the audit head file: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s %d %s\n", now.UTC().Format(time.RFC3339), result.Checked, result.HeadHash)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return result, fmt.Errorf("write the audit head: %w", err)
	}
	return result, nil
}

// compareHead compares the last head in the file with the chain.
func compareHead(app core.App, path string, result Result) (Result, error) {
	number, hash, err := lastHead(path)
	if err != nil || number == 0 {
		return result, err
	}
	rows, err := collections.AuditRows(app, collections.NumberID(number-1), collections.NumberID(number), 1)
	if err != nil {
		return result, err
	}
	if len(rows) == 1 && rows[0].Hash == hash {
		return result, nil
	}
	if number > result.Checked {
		return result.invalidAt(result.Checked+1, RowsMissing), nil
	}
	return result.invalidAt(number, RowChanged), nil
}

// lastHead returns the head in the last line of the file, or zero values if there is none.
func lastHead(path string) (number int64, hash string, err error) {
	file, err := os.Open(path) //nolint:gosec // the operator configures the path
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("read the audit head file: %w", err)
	}
	defer file.Close() //nolint:errcheck // opened for reading only
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			return 0, "", errors.New("the audit head file is damaged")
		}
		if number, err = strconv.ParseInt(fields[1], 10, 64); err != nil || number < 1 {
			return 0, "", errors.New("the audit head file is damaged")
		}
		hash = fields[2]
	}
	return number, hash, lines.Err()
}

// keys compute and check the row hashes and the seal of the state. They are derived from the index key, so an attacker with only the database file
// cannot compute them, and key rotation does not change them.
type keys struct{ row, state hash.Hash }

func loadKeys() (keys, error) {
	k, err := collections.LoadAuditKeys()
	if err != nil {
		return keys{}, fmt.Errorf("keys of the audit trail: %w", err)
	}
	return keys{hmac.New(sha256.New, k.Row), hmac.New(sha256.New, k.State)}, nil
}

// seal returns the HMAC-SHA-256 of the state in lower-case hex.
func (k keys) seal(s collections.AuditState) string {
	k.state.Reset()
	_, _ = fmt.Fprintf(k.state, "%d %s %d %s", s.Entries, s.Head, s.Unkeyed, s.UnkeyedHead) // a hash never fails
	return hex.EncodeToString(k.state.Sum(nil))
}

// hasValidSeal reports whether the state exists and its seal is valid.
func (k keys) hasValidSeal(end collections.AuditEnd) bool {
	return end.HasState && hmac.Equal([]byte(k.seal(end.AuditState)), []byte(end.Seal))
}

// EnsureState creates the state of a new database or of one of an older version, in which the rows keep their hashes. It never recreates a removed state:
// Verify reports StateMissing from then on. [CheckEnd] checks that the trail ends as its state records.
func EnsureState(app core.App) error {
	return app.RunInTransaction(func(tx core.App) error {
		k, err := loadKeys()
		if err != nil {
			return err
		}
		end, err := collections.ReadAuditEnd(tx)
		if err != nil || end.HasState {
			return err
		}
		legitimate, err := mayLackState(tx)
		if err != nil || !legitimate {
			return err
		}
		end = unkeyed(end)
		end.Seal = k.seal(end.AuditState)
		return errors.Join(collections.InsertAuditState(tx, end.AuditState), collections.MarkAuditKeys(tx))
	})
}

// ErrBroken means that the end of the trail differs from its sealed state.
var ErrBroken = errors.New("the end of the audit trail does not match its sealed state; run vigil audit verify")

// CheckEnd checks only the end of the trail, which takes constant time, and fails with [ErrBroken].
func CheckEnd(app core.App) error {
	k, err := loadKeys()
	if err != nil {
		return err
	}
	end, err := collections.ReadAuditEnd(app)
	if err != nil {
		return err
	}
	if !k.hasValidSeal(end) || end.Entries != collections.Number(end.ID) || end.Entries > 0 && end.Head != end.Hash {
		return ErrBroken
	}
	return nil
}

// mayLackState reports whether a missing state is legitimate: the keys show that an older version wrote the database last, or the database is unused.
func mayLackState(app core.App) (bool, error) {
	if legitimate, err := collections.PredatesAuditKeys(app); err != nil || legitimate {
		return legitimate, err
	}
	used, err := collections.IsInUse(app)
	return !used, err
}

// unkeyed returns the state of a trail in which all rows are of an older version.
func unkeyed(end collections.AuditEnd) collections.AuditEnd {
	last := collections.Number(end.ID)
	head := end.Hash
	if last == 0 {
		head = firstPrevious
	}
	end.AuditState = collections.AuditState{Entries: last, Head: head, Unkeyed: last, UnkeyedHead: head}
	return end
}
