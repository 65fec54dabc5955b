package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// FeeChange is what an import changes about a fee: the amounts that apply now on its date, null without any, and those of the list.
type FeeChange struct {
	CPTCode       string `json:"cpt_code"`
	Locality      string `json:"locality"`
	EffectiveDate string `json:"effective_date"`
	Status        string `json:"status"`
	ChargeBefore  *Cents `json:"charge_before"`
	Charge        *Cents `json:"charge"`
	Before        *Cents `json:"expected_before"`
	Expected      *Cents `json:"expected"`
}

// FeePreview is the outcome that an import would have, with the rows that are new or differ.
type FeePreview struct {
	FeeImport
	Changes []FeeChange `json:"changes"`
}

// PreviewFees returns what the import of a fee list would change, with its counts. It refuses what the import refuses, and stores nothing.
func PreviewFees(app core.App, file []byte, now time.Time) (done FeePreview, err error) {
	fees, stored, err := readFees(app, file, now)
	if err != nil {
		return done, err
	}
	done.Rows, done.Changes = len(fees), []FeeChange{}
	for _, fee := range fees {
		c := FeeChange{CPTCode: fee.CPTCode, Locality: fee.Locality, EffectiveDate: fee.EffectiveDate, Status: fee.Status, Charge: (*Cents)(fee.ChargeCents), Expected: (*Cents)(fee.ExpectedCents)}
		same := (*collections.Fee)(nil)
		for i, s := range stored { // latest first
			if s.CPTCode != fee.CPTCode || s.Locality != fee.Locality {
				continue
			}
			if s.EffectiveDate == fee.EffectiveDate {
				same = &stored[i]
			}
			if !s.Shipped && s.Status == collections.FeeFinal && s.EffectiveDate <= fee.EffectiveDate {
				c.ChargeBefore, c.Before = firstCents(c.ChargeBefore, s.ChargeCents), firstCents(c.Before, s.ExpectedCents)
			}
		}
		if done.count(same, fee) {
			done.Changes = append(done.Changes, c)
		}
	}
	return done, nil
}

// firstCents returns the amount found before, else the next.
func firstCents(found *Cents, next *int64) *Cents {
	if found != nil {
		return found
	}
	return (*Cents)(next)
}
