package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

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

// VerifyAndKeepHead is VerifyAgainstHead, and appends the head to the file when the chain holds: one line of time, row number and hash.
func VerifyAndKeepHead(app core.App, path string, now time.Time) (Result, error) {
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
