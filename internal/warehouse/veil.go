package warehouse

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// oldest is the age from which people are of one age: there are too few of them. Source: 45 CFR 164.514(b)(2)(i)(C).
const oldest = 90

// veil keeps from view who a row is about. Its key is derived from the database's: two practices know the same person by two ids.
type veil struct{ key []byte }

// id is what stands for a record: the same each night, and nobody who has it finds the record without the key.
func (v veil) id(of, record string) string {
	if record == "" {
		return ""
	}
	if n := collections.Number(record); n > 0 {
		record = strconv.FormatInt(n, 10)
	}
	return hex.EncodeToString(phi.MAC(v.key, of+"\x00"+record)[:16])
}

// birthYear is the year of a date, and for those of 90 or more the year in which one has that age.
func birthYear(date string, now time.Time) string {
	year, err := strconv.Atoi(date[:min(len(date), 4)])
	if err != nil {
		return ""
	}
	return strconv.Itoa(max(year, now.Year()-oldest))
}

// row is a row as it may be seen.
func (v veil) row(t *collections.WarehouseTable, row collections.WarehouseRow, now time.Time) []string {
	values := make([]string, len(row.Values))
	for i, c := range t.Columns {
		switch c.Shape {
		case collections.ShapeID:
			values[i] = v.id(c.Of, row.Values[i])
		case collections.ShapeBirthYear:
			values[i] = birthYear(row.Values[i], now)
		default:
			values[i] = row.Values[i]
		}
	}
	return values
}
