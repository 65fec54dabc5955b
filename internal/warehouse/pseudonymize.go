package warehouse

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// ageCap is the age at which ages are combined into one group, because too few people are older. Source: 45 CFR 164.514(b)(2)(i)(C).
const ageCap = 90

// pseudonymizer replaces identities by keyed hashes. The key is derived from the database's key, so two practices export different ids for the same person.
type pseudonymizer struct{ key []byte }

// id returns the pseudonym of a record. It is stable between runs and cannot be reversed without the key.
func (p pseudonymizer) id(of, record string) string {
	if record == "" {
		return ""
	}
	if n := collections.Number(record); n > 0 {
		record = strconv.FormatInt(n, 10)
	}
	return hex.EncodeToString(phi.MAC(p.key, of+"\x00"+record)[:16])
}

// birthYear returns the year of a date; for patients of 90 or more, the year of birth of a 90-year-old.
func birthYear(date string, now time.Time) string {
	year, err := strconv.Atoi(date[:min(len(date), 4)])
	if err != nil {
		return ""
	}
	return strconv.Itoa(max(year, now.Year()-ageCap))
}

// row returns the values of a row with pseudonyms instead of ids.
func (p pseudonymizer) row(t *collections.WarehouseTable, row collections.WarehouseRow, now time.Time) []string {
	values := make([]string, len(row.Values))
	for i, c := range t.Columns {
		switch c.Shape {
		case collections.ShapeID:
			values[i] = p.id(c.Of, row.Values[i])
		case collections.ShapeBirthYear:
			values[i] = birthYear(row.Values[i], now)
		default:
			values[i] = row.Values[i]
		}
	}
	return values
}
