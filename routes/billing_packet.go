package routes

import (
	"fmt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/pdf"
)

var (
	readingColumns = []string{"day", "id", "observation_type", "measured_at", "device_id", "source", "origin", "values"}
	orderColumns   = []string{"id", "kind", "dated", "recorded_at", "recorded_by", "author_id", "author", "text"}
)

func ordersOf(e billing.Evidence) section {
	orders := section{name: "orders", title: "Orders, plans and visits", columns: orderColumns, widths: []float64{1, 3, 2, 3, 4, 1, 3, 6}}
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
		o.Number(), o.Kind(), o.Dated(), instantOrNull(o.RecordedAt()), o.RecordedBy(), collections.Number(o.AuthorID()), e.Names[o.AuthorID()], orNull(text),
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

func writePacket(d *pdf.Document, e billing.Evidence) {
	if v := viewRendering(e); v != nil {
		npi := "no NPI on record"
		if v.NPI != nil {
			npi = "NPI " + *v.NPI
		}
		d.Paragraph(fmt.Sprintf("Rendered by %s, %s.", v.Name, npi))
	}
	plan := e.PlanOfCare()
	if plan == nil {
		d.Paragraph("No plan of care is on record.")
		return
	}
	d.Paragraph(fmt.Sprintf("Plan of care of %s by %s, see the orders below.", plan.Dated(), e.Names[plan.AuthorID()]))
}
