package billing

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// BundledFees returns the national fees in the rules of a year as a CSV file; false if it has none. They are from secondary sources and apply only after
// a user has checked and imported them.
func BundledFees(year string) ([]byte, bool) {
	for _, pack := range rulePacks {
		if fmt.Sprint(pack.Year) != year || len(pack.Fees) == 0 {
			continue
		}
		var file bytes.Buffer
		rows := csv.NewWriter(&file)
		_ = rows.Write(feeColumns) // a buffer does not fail
		for _, fee := range pack.Fees {
			_ = rows.Write([]string{fee.Code, "", year + "-01-01", "", fee.Expected.String(), fee.Source})
		}
		rows.Flush()
		return file.Bytes(), true
	}
	return nil, false
}

// BundledFeeYears returns the years of the bundled lists.
func BundledFeeYears() (years []string) {
	for _, pack := range rulePacks {
		if len(pack.Fees) > 0 {
			years = append(years, fmt.Sprint(pack.Year))
		}
	}
	return years
}

// StoreBundledFees stores the bundled national list of the current year, if there is one, in a new
// practice. Its amounts apply to charges only until the practice has imported the list. Source:
// docs/decisions/billing.md, "Fee schedule".
func StoreBundledFees(app core.App, now time.Time) error {
	file, isShipped := BundledFees(now.Format("2006"))
	if !isShipped {
		return nil
	}
	fees, err := ParseFees(file)
	if err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		for _, fee := range fees {
			fee.Shipped = true
			if _, err := collections.PutFee(tx, fee, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// missingFeesFrom is the month from which the next year's list is expected: CMS publishes the final rule by November 1. Source: 42 U.S.C.
// 1395w-4(b)(1).
const missingFeesFrom = time.November

// MissingFees returns the billable codes without a final fee of a year: the next one from November on, else the current one if there is any fee. Fees
// of other localities than the practice's do not count.
func (e *Engine) MissingFees(app core.App, now time.Time) (codes []string, err error) {
	years, err := collections.FeeYears(app, e.Locality)
	if err != nil {
		return nil, err
	}
	year := now.In(e.Zone).Year()
	isDue := now.In(e.Zone).Month() >= missingFeesFrom
	if isDue {
		year++
	}
	if !isDue && len(years) == 0 {
		return nil, nil
	}
	for _, code := range e.Codes() {
		_, isBillable := e.Rule(code, fmt.Sprintf("%d-12-31", year))
		if isBillable && !slices.Contains(years[code], fmt.Sprint(year)) {
			codes = append(codes, code)
		}
	}
	return codes, nil
}

// feeStatus is an optional column of a fee list.
const feeStatus = "status"

// feeColumns are the columns of a fee list, in any order.
var feeColumns = []string{"cpt_code", "locality", "effective_date", "charge", "expected", "source"}

const (
	maxFees     = 20_000
	maxLocality = 20
	maxSource   = 200
)

// FeeImport is the outcome of an import.
type FeeImport struct {
	Rows      int `json:"rows"`
	Created   int `json:"created"`
	Replaced  int `json:"replaced"`
	Unchanged int `json:"unchanged"`
}

// feeChunkSize is how many rows are stored in one transaction; ingestion waits for it.
const feeChunkSize = 200

// ImportFees imports a fee list if all of it is valid; errors are reported by row and column before anything is stored. Existing equal rows
// stay, different ones are replaced, with an audit entry each. A long list is stored in chunks; after an interruption, importing it again
// completes it. now is in the practice's zone. Source: docs/decisions/billing.md, "Fee schedule".
func ImportFees(app core.App, file []byte, by audit.Actor, now time.Time) (done FeeImport, err error) {
	fees, _, err := readFees(app, file, now)
	if err != nil {
		return done, err
	}
	done.Rows = len(fees)
	for part := range slices.Chunk(fees, feeChunkSize) {
		if err := app.RunInTransaction(func(tx core.App) error { return done.store(tx, part, by, now) }); err != nil {
			return done, err
		}
	}
	return done, nil
}

// store stores a chunk of a list and adds to the counts.
func (fi *FeeImport) store(tx core.App, fees []collections.Fee, by audit.Actor, now time.Time) error {
	chain, err := audit.NewChain(tx)
	if err != nil {
		return err
	}
	for _, fee := range fees {
		before, err := collections.PutFee(tx, fee, now)
		if err != nil {
			return err
		}
		if !fi.count(before, fee) {
			continue
		}
		if err := chain.Add(feeAuditEntry(before, fee, by), now); err != nil {
			return err
		}
	}
	return chain.Store()
}

// count counts a fee as created, unchanged or replaced, by the stored fee with its code, locality
// and date (nil for none), and reports whether it changes anything. A fee that replaces a bundled
// one counts as created.
func (fi *FeeImport) count(before *collections.Fee, fee collections.Fee) bool {
	switch {
	case before == nil, before.Shipped:
		fi.Created++
	case before.Equal(fee):
		fi.Unchanged++
		return false
	default:
		fi.Replaced++
	}
	return true
}

func feeAuditEntry(before *collections.Fee, fee collections.Fee, by audit.Actor) audit.Entry {
	was := collections.Fee{}
	if before != nil {
		was = *before
	}
	return audit.Entry{
		Event: audit.SettingsUpdate, Actor: by, ResourceType: audit.ResourceFee,
		ResourceID: strings.TrimSpace(feeKey(fee)),
		Changes: audit.Changes{
			"charge":   {Old: dollarsOrNil(was.ChargeCents), New: dollarsOrNil(fee.ChargeCents)},
			"expected": {Old: dollarsOrNil(was.ExpectedCents), New: dollarsOrNil(fee.ExpectedCents)},
		},
	}
}

func dollarsOrNil(cents *int64) any {
	if cents == nil {
		return nil
	}
	return Cents(*cents).String()
}

// ParseFees parses a fee list. Rows are numbered as in a spreadsheet: the header is row 1.
func ParseFees(file []byte) (fees []collections.Fee, err error) {
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))))
	names, err := rows.Read()
	if err != nil {
		return nil, fault.Field("row 1", "Expected the columns "+strings.Join(feeColumns, ",")+".")
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	for _, name := range feeColumns {
		if !slices.Contains(names, name) || len(names) != len(feeColumns) && (len(names) != len(feeColumns)+1 || !slices.Contains(names, feeStatus)) {
			return nil, fault.Field("row 1", "Expected the columns "+strings.Join(feeColumns, ",")+".")
		}
	}
	wrong, seen := fault.Fields{}, map[string]int{}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		number, _ := rows.FieldPos(0)
		if err != nil || len(fees) == maxFees {
			return nil, fault.Field(fmt.Sprintf("row %d", rowOfError(err, number)), fmt.Sprintf("Must have %d cells, in a file within the row limit.", len(names)))
		}
		fee := parseFee(cells, names, number, wrong)
		key := feeKey(fee)
		if first := seen[key]; first > 0 {
			wrong.Add(fmt.Sprintf("row %d.cpt_code", number), fmt.Sprintf("Row %d has this code, locality and date already.", first))
		}
		seen[key] = number
		fees = append(fees, fee)
	}
	if len(fees) == 0 {
		wrong.Add("row 2", "There are no rows.")
	}
	return fees, wrong.Err()
}

// rowOfError returns the row at which parsing stopped.
func rowOfError(err error, number int) int {
	if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
		return syntax.StartLine
	}
	return number
}

var localityPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z _-]*$`)

func parseFee(cells, names []string, number int, wrong fault.Fields) (fee collections.Fee) {
	fee.Status = collections.FeeFinal
	reject := func(column, message string) { wrong.Add(fmt.Sprintf("row %d.%s", number, column), message) }
	for i, name := range names {
		text := strings.TrimSpace(cells[i])
		switch name {
		case "cpt_code":
			if fee.CPTCode = text; !inCatalog(text) {
				reject(name, "Is not a code of the catalog.")
			}
		case "locality":
			if fee.Locality = text; len(text) > maxLocality || text != "" && !localityPattern.MatchString(text) {
				reject(name, "Expected the locality of the Medicare fee schedule, or nothing for national amounts.")
			}
		case "effective_date":
			if fee.EffectiveDate = text; ParseDay(text).IsZero() {
				reject(name, "Must be a date, YYYY-MM-DD.")
			}
		case "charge":
			fee.ChargeCents = parseDollars(text, 1, name, reject)
		case "expected":
			fee.ExpectedCents = parseDollars(text, 0, name, reject)
		case feeStatus:
			if fee.Status = cmp.Or(text, collections.FeeFinal); text != "" && text != collections.FeeFinal && text != collections.FeeProposed {
				reject(name, "Must be final or proposed.")
			}
		case "source":
			if fee.Source = text; len([]rune(text)) > maxSource || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\ufffd' }) {
				reject(name, fmt.Sprintf("Must be one line of at most %d characters.", maxSource))
			}
		}
	}
	if fee.ChargeCents == nil && fee.ExpectedCents == nil && strings.TrimSpace(cells[slices.Index(names, "charge")]+cells[slices.Index(names, "expected")]) == "" {
		reject("charge", "A row needs a charge, an expected amount, or both.")
	}
	return fee
}

var dollarsPattern = regexp.MustCompile(`^[0-9]{1,7}(\.[0-9]{1,2})?$`)

// parseDollars parses dollars in integer arithmetic; nil for an empty cell.
func parseDollars(text string, least int64, column string, reject func(column, message string)) *int64 {
	if text == "" {
		return nil
	}
	whole, part, _ := strings.Cut(text, ".")
	cents, err := strconv.ParseInt(whole+(part + "00")[:min(2, len(part)+2)], 10, 64)
	if !dollarsPattern.MatchString(text) || err != nil || cents < least || cents > maxDollars*100 {
		reject(column, fmt.Sprintf("Must be dollars from %s to %d, with at most two decimals.", Cents(least), maxDollars))
		return nil
	}
	return &cents
}

// CheckFee returns the problem with a fee written outside the import, "" for none.
func CheckFee(fee collections.Fee) string {
	if !inCatalog(fee.CPTCode) {
		return "The CPT code is not in the catalog."
	}
	if ParseDay(fee.EffectiveDate).IsZero() {
		return "The effective date must be YYYY-MM-DD."
	}
	for _, cents := range []*int64{fee.ChargeCents, fee.ExpectedCents} {
		if cents != nil && (*cents < 0 || *cents > maxDollars*100) {
			return "A fee is 0 to 100000000 whole cents."
		}
	}
	return ""
}
