package billing

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// What Medicare allows: a claim within a calendar year after the service, and a request for redetermination within 120 days of the receipt of the
// decision, which is presumed five days after its date. Source: 42 CFR 424.44(a)(1); 42 CFR 405.942(a)(1).
const (
	medicareFilingYears = 1
	medicareAppealDays  = 120 + 5
)

// Deadlines are the last days, YYYY-MM-DD, on which the payer of a denied claim takes a corrected claim or an appeal; "" if they are not known.
type Deadlines struct{ RefileBy, AppealBy string }

// DenialDeadlines returns the deadlines of a denied entry by its payer. A date that cannot be read has none. It is pure.
func DenialDeadlines(payer collections.Payer, serviceDate, denialDate string) (d Deadlines) {
	isMedicare := payer.Filing == collections.MedicarePartB
	if served, err := time.Parse(time.DateOnly, serviceDate); err == nil {
		switch {
		case payer.FilingLimitDays > 0:
			d.RefileBy = served.AddDate(0, 0, payer.FilingLimitDays).Format(time.DateOnly)
		case isMedicare:
			d.RefileBy = served.AddDate(medicareFilingYears, 0, 0).Format(time.DateOnly)
		}
	}
	days := payer.AppealLimitDays
	if days == 0 && isMedicare {
		days = medicareAppealDays
	}
	if denied, err := time.Parse(time.DateOnly, denialDate); err == nil && days > 0 {
		d.AppealBy = denied.AddDate(0, 0, days).Format(time.DateOnly)
	}
	return d
}
