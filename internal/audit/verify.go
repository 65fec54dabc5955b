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

// Problem is what is wrong with a trail.
type Problem string

// The problems. A row that does not fit comes before a guard, and a state that says nothing before both.
const (
	// RowChanged: a row was changed, moved or written by somebody else.
	RowChanged Problem = "row_changed"
	// RowsMissing: a row is not there, or the trail ends before its last one.
	RowsMissing Problem = "rows_missing"
	// StateMissing: what is kept about the trail was removed, so nothing vouches for any row.
	StateMissing Problem = "state_missing"
	// StateForged: what is kept about the trail was not written by the service.
	StateForged Problem = "state_forged"
	// GuardMissing: a trigger that keeps the trail is gone or is another one; the rows fit.
	GuardMissing Problem = "guard_missing"
)

// Result is what a walk along the chain found.
type Result struct {
	Valid bool
	// Checked counts the rows that were looked at, the invalid one included.
	Checked int64
	// FirstInvalidID is the number of the first row that was changed, moved or removed, or that nothing vouches for; the next one to come
	// when a guard is gone.
	FirstInvalidID *int64
	// HeadHash is the hash of the last row when the walk began; "" for an empty log.
	HeadHash string
	Problem  Problem // "" for a trail that holds
}

func (r Result) broken(at int64, problem Problem) Result {
	r.Valid, r.FirstInvalidID, r.Problem = false, &at, problem
	return r
}

// pageSize keeps a walk from holding a read open for long.
const pageSize = 1000

// Verify walks the whole log up to where it ended when the walk began, and stops at the first row that does not fit.
// progress, when not nil, hears after each page how many of how many rows were checked.
func Verify(app core.App, progress func(checked, total int64)) (Result, error) {
	k, err := loadKeys()
	if err != nil {
		return Result{}, err
	}
	end, problem, err := endOf(app, k)
	if err != nil {
		return Result{}, err
	}
	result := Result{Valid: true, HeadHash: end.Hash}
	if problem != "" {
		return result.broken(1, problem), nil
	}
	result, err = walk(app, k, end, result, progress)
	if err != nil || !result.Valid {
		return result, err
	}
	err = collections.CheckAuditTriggers(app)
	if errors.Is(err, collections.ErrAuditTriggers) {
		return result.broken(result.Checked+1, GuardMissing), nil
	}
	return result, err
}

// endOf is where the trail ends, and what is wrong with what is kept about it.
func endOf(app core.App, k keys) (collections.AuditEnd, Problem, error) {
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
	case err != nil || k.sealed(end):
		return end, "", err
	case end.HasState:
		return end, StateForged, nil
	}
	earlier, err := expected(app)
	if err != nil || !earlier {
		return end, StateMissing, err
	}
	return unkeyed(end), "", nil
}

func walk(app core.App, k keys, end collections.AuditEnd, result Result, progress func(checked, total int64)) (Result, error) {
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
				return result.broken(number, RowsMissing), nil
			}
			if number > end.Entries || !fits(k, end.AuditState, row, number, previous) {
				return result.broken(number, RowChanged), nil
			}
			afterID, previous = row.ID, row.Hash
		}
		if len(rows) == 0 {
			return Result{}, errors.New("audit: the last row vanished during the walk")
		}
		if progress != nil {
			progress(result.Checked, collections.Number(end.ID))
		}
	}
	if result.Checked < end.Entries {
		return result.broken(result.Checked+1, RowsMissing), nil
	}
	return result, nil
}

// fits reports whether a row is the numbered one, follows the previous one, and is as it was written: up to where a key came in by its plain
// hash, from there on by the keyed one.
func fits(k keys, s collections.AuditState, row collections.AuditRow, number int64, previous string) bool {
	with := sha256.New()
	if number > s.Unkeyed {
		with = k.row
	}
	if number == s.Unkeyed && row.Hash != s.UnkeyedHead || number == s.Entries && row.Hash != s.Head {
		return false
	}
	return row.ID == collections.NumberID(number) && row.PrevHash == previous && hmac.Equal([]byte(row.Hash), []byte(rowHash(with, previous, row)))
}

// VerifyAgainstHead verifies the chain and holds it against the head that a file in another store remembers. A chain that was cut at its end
// still holds in itself, but no longer has that row: it is invalid from the first row that is missing. "" is no file.
// Source: docs/decisions/security.md, "Hash chain".
func VerifyAgainstHead(app core.App, path string, progress func(checked, total int64)) (Result, error) {
	result, err := Verify(app, progress)
	if err != nil || !result.Valid || path == "" {
		return result, err
	}
	return compareHead(app, path, result)
}

// VerifyAndAppendHead is VerifyAgainstHead, and appends the head to the file when the chain holds: one line of time, row number and hash.
func VerifyAndAppendHead(app core.App, path string, now time.Time) (Result, error) {
	result, err := VerifyAgainstHead(app, path, nil)
	if err != nil || !result.Valid || path == "" || result.Checked == 0 {
		return result, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the operator's own setting
	if err != nil {
		return result, fmt.Errorf("open the audit head file: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s %d %s\n", now.UTC().Format(time.RFC3339), result.Checked, result.HeadHash)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return result, fmt.Errorf("keep the audit head: %w", err)
	}
	return result, nil
}

// compareHead holds the last head that was kept against the chain.
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
		return result.broken(result.Checked+1, RowsMissing), nil
	}
	return result.broken(number, RowChanged), nil
}

// lastHead reads the last line of the file; zero when there is none.
func lastHead(path string) (number int64, hash string, err error) {
	file, err := os.Open(path) //nolint:gosec // the operator's own setting
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("read the audit head file: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
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

// keys make and check the hashes of rows and the seal of the state. They are derived from the database's index key: who has the file alone
// cannot make either, and no rotation changes them.
type keys struct{ row, state hash.Hash }

func loadKeys() (keys, error) {
	k, err := collections.LoadAuditKeys()
	if err != nil {
		return keys{}, fmt.Errorf("keys of the audit trail: %w", err)
	}
	return keys{hmac.New(sha256.New, k.Row), hmac.New(sha256.New, k.State)}, nil
}

// seal is HMAC-SHA-256 in lower-case hex over everything that is kept about the trail.
func (k keys) seal(s collections.AuditState) string {
	k.state.Reset()
	_, _ = fmt.Fprintf(k.state, "%d %s %d %s", s.Entries, s.Head, s.Unkeyed, s.UnkeyedHead) // a hash never fails
	return hex.EncodeToString(k.state.Sum(nil))
}

// sealed reports whether the state is as the service wrote it.
func (k keys) sealed(end collections.AuditEnd) bool {
	return end.HasState && hmac.Equal([]byte(k.seal(end.AuditState)), []byte(end.Seal))
}

// Begin makes the state that a database has not had yet: of a fresh one, and of one that an older version wrote, whose rows keep their
// hashes and are sealed as they are. It never makes one that was there before: a trail that lost its state says so at every check, for good.
// Whether the trail ends as its state says is for [CheckEnd].
func Begin(app core.App) error {
	return app.RunInTransaction(func(tx core.App) error {
		k, err := loadKeys()
		if err != nil {
			return err
		}
		end, err := collections.ReadAuditEnd(tx)
		if err != nil || end.HasState {
			return err
		}
		earlier, err := expected(tx)
		if err != nil || !earlier {
			return err
		}
		end = unkeyed(end)
		end.Seal = k.seal(end.AuditState)
		return errors.Join(collections.InsertAuditState(tx, end.AuditState), collections.MarkAuditKeys(tx))
	})
}

// ErrBroken says that the trail does not end where its sealed state says.
var ErrBroken = errors.New("the audit trail does not end as its sealed state says: see vigil audit verify")

// CheckEnd looks at the end only, which costs nothing, and fails with [ErrBroken].
func CheckEnd(app core.App) error {
	k, err := loadKeys()
	if err != nil {
		return err
	}
	end, err := collections.ReadAuditEnd(app)
	if err != nil {
		return err
	}
	if !k.sealed(end) || end.Entries != collections.Number(end.ID) || end.Entries > 0 && end.Head != end.Hash {
		return ErrBroken
	}
	return nil
}

// expected reports whether it is in order that there is no state: the keys say that an older version was here last, or nobody at all was.
func expected(app core.App) (bool, error) {
	if earlier, err := collections.PredatesAuditKeys(app); err != nil || earlier {
		return earlier, err
	}
	used, err := collections.IsInUse(app)
	return !used, err
}

// unkeyed is the state of a trail all of whose rows are of an older version.
func unkeyed(end collections.AuditEnd) collections.AuditEnd {
	last := collections.Number(end.ID)
	head := end.Hash
	if last == 0 {
		head = firstPrevious
	}
	end.AuditState = collections.AuditState{Entries: last, Head: head, Unkeyed: last, UnkeyedHead: head}
	return end
}
