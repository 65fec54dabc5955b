package routes

import (
	"cmp"
	"fmt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

var (
	readingColumns = []string{"day", "id", "observation_type", "measured_at", "device_id", "source", "origin", "values"}
	orderColumns   = []string{"id", "kind", "dated", "recorded_at", "recorded_by", "author_id", "author", "text"}
)

func ordersOf(e billing.Evidence) section {
	orders := section{name: "orders", title: "Orders, plans and visits", columns: orderColumns, widths: []float64{8, 24, 18, 42, 14, 40, 108}}
	for _, order := range e.Orders {
		orders.rows = append(orders.rows, orderRow(e, order))
	}
	return orders
}

// orderRow renders an order; a text that cannot be decrypted does not hide the other columns.
func orderRow(e billing.Evidence, o *collections.Order) []any {
	text := collections.UnreadableText
	if collections.Readable(o.ProxyRecord()) == nil {
		text = o.Text().Reveal()
	}
	return []any{
		o.Number(), o.Kind(), o.Dated(), moment(collections.FormatInstant(o.RecordedAt())), o.RecordedBy(), collections.Number(o.AuthorID()), e.Names[o.AuthorID()], orNull(text),
	}
}

func viewPlan(e billing.Evidence) map[string]any {
	plan := e.PlanOfCare()
	if plan == nil {
		return nil
	}
	return section{columns: orderColumns, rows: [][]any{orderRow(e, plan)}}.objects()[0]
}

// renderingView is the rendering provider as named on a claim.
type renderingView struct {
	ID       int64   `json:"id"`
	Name     string  `json:"name"`
	NPI      *string `json:"npi"`
	Taxonomy *string `json:"taxonomy_code"`
}

func viewRendering(e billing.Evidence) *renderingView {
	if u := e.Provider; u != nil {
		return &renderingView{u.Number(), fmt.Sprintf("%s, %s", u.LastName(), u.FirstName()), orNull(u.NPI()), orNull(u.Taxonomy())}
	}
	return nil
}

// beneficiaryView is the patient as an auditor identifies them.
type beneficiaryView struct {
	PatientID   string  `json:"patient_id"`
	Name        string  `json:"name"`
	DateOfBirth *string `json:"date_of_birth"`
	MRN         *string `json:"mrn"`
	MemberID    *string `json:"member_id"`
	TimeZone    string  `json:"time_zone"` // at the end of the period; a day with readings is in the zone of that time
}

// viewBeneficiary renders the patient of an entry. What cannot be decrypted does not hide the rest of the evidence.
func (a *api) viewBeneficiary(v entryView, e billing.Evidence) beneficiaryView {
	born, mrn := collections.UnreadableText, collections.UnreadableText
	if collections.Readable(e.Patient.ProxyRecord()) == nil {
		born, mrn = e.Patient.Demographics().DateOfBirth, e.Patient.MRN()
	}
	return beneficiaryView{
		e.Patient.Id, v.PatientName, orNull(born), orNull(mrn), orNull(e.MemberID.Reveal()),
		e.Patient.Zones(a.Zone).At(collections.ParseDay(v.PeriodEnd, a.Zone)).String(),
	}
}

// billingPracticeView is the billing provider as named on a claim. Its zone is that of months and of the times in a PDF.
type billingPracticeView struct {
	Name     string  `json:"name"`
	NPI      *string `json:"npi"`
	TimeZone string  `json:"time_zone"`
}

func (a *api) viewPractice() billingPracticeView {
	practice := a.Billing.Claims.Practice
	return billingPracticeView{cmp.Or(practice.Name, a.PracticeName), orNull(practice.NPI), a.Zone.String()}
}
