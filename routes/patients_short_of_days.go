package routes

import (
	"cmp"
	"slices"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
)

// daysShortView is a patient with a device-supply period that can still reach the required days with data.
type daysShortView struct {
	PatientID   string  `json:"patient_id"`
	PatientName string  `json:"patient_name"`
	MRN         string  `json:"mrn"`
	Phone       *string `json:"phone"`
	First       string  `json:"first_day"`
	Last        string  `json:"last_day"`
	Days        int     `json:"days"`
	DaysNeeded  int     `json:"days_needed"`
	ToGo        int     `json:"days_to_go"`
	DaysLeft    int     `json:"days_left"`
	Spare       int     `json:"days_to_spare"`
	Behind      bool    `json:"behind"`
}

// minPaidDays is the number of days with data below which a patient is listed first: no payer accepts so
// few.
const minPaidDays = 2

// listDaysShort lists the patients to call so that they reach the days with data that their payer
// requires: first those with none or one, then those with the fewest days to spare. It shows no
// amounts, so every role that makes these calls may read it. Source: docs/decisions/billing.md,
// "Data days".
func (a *api) listDaysShort(c *web.Call) error {
	q, page := c.Listing()
	behind, only := q.Boolean("behind"), q.PatientIDs()
	if err := q.Err(); err != nil {
		return err
	}
	include, err := a.careTeamPredicate(c)
	if err != nil {
		return err
	}
	near, err := a.Billing.DaysShort(c.App, c.Now, func(id string) bool {
		return (only == nil || slices.Contains(only, id)) && (include == nil || include(id))
	})
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(web.Map(near, viewDaysShort), func(v daysShortView) bool { return v.Spare < 0 || behind != nil && v.Behind != *behind })
	slices.SortFunc(all, func(x, y daysShortView) int {
		return cmp.Or(cmp.Compare(min(x.Days/minPaidDays, 1), min(y.Days/minPaidDays, 1)), cmp.Compare(x.Spare, y.Spare), cmp.Compare(x.DaysLeft, y.DaysLeft), cmp.Compare(x.PatientID, y.PatientID))
	})
	views := web.Cut(page, all)
	if err := a.addNamesAndPhones(c, views); err != nil {
		return err
	}
	answer, err := web.PageOf(c, page, len(all), views)
	if err != nil {
		return err
	}
	return c.Respond(answer, recordShown(c, audit.ResourcePatient, "", views, func(v daysShortView) string { return v.PatientID }))
}

// viewDaysShort counts the missing days. Behind means that the patient would miss the target at the
// present rate, even before the first reading.
func viewDaysShort(n billing.NearCode) daysShortView {
	room, elapsed := n.DaysLeft, billing.DaysBetween(n.PeriodStart, n.PeriodEnd)+1-n.DaysLeft
	if n.HasDataToday {
		room, elapsed = room-1, elapsed+1
	}
	elapsed += max(0, n.DaysHeld-1) // without today
	return daysShortView{
		PatientID: n.PatientID, First: n.PeriodStart, Last: n.PeriodEnd, Days: n.Have, DaysNeeded: n.Needed, ToGo: n.Missing(), DaysLeft: n.DaysLeft,
		Spare: room - n.Missing(), Behind: n.Have*(room+elapsed) < n.Needed*elapsed,
	}
}

// addNamesAndPhones adds the patients' names, and their phone numbers if the caller may see them.
func (a *api) addNamesAndPhones(c *web.Call, views []daysShortView) error {
	ids := web.Map(views, func(v daysShortView) string { return v.PatientID })
	names, err := patients.Names(c.App, ids)
	if err != nil {
		return err
	}
	phones, err := patients.Phones(c.App, ids, c.Caller.Role)
	if err != nil {
		return err
	}
	for i := range views {
		v := &views[i]
		v.PatientName, v.MRN = names[v.PatientID].FullName(), names[v.PatientID].MRN
		if phone, known := phones[v.PatientID]; known {
			v.Phone = orNull(phone.Reveal())
		}
	}
	return nil
}
