package directory

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// ReadClaims returns the claims of a practice's database.
func ReadClaims(app core.App, key []byte) (map[ID][]Interval, error) {
	rows, err := collections.DeviceClaims(app)
	if err != nil {
		return nil, err
	}
	claims := map[ID][]Interval{}
	for _, row := range rows {
		id := NewID(key, Kind(row.Kind), row.Identifier)
		if row.From.IsZero() { // registered, and never assigned
			claims[id] = append([]Interval{}, claims[id]...)
			continue
		}
		claims[id] = append(claims[id], Interval{From: row.From, To: row.To})
	}
	return claims, nil
}
