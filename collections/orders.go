package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Kinds of orders.
const (
	OrderOfMonitoring = "rpm_order"
	PlanOfCare        = "plan_of_care"
	EstablishedVisit  = "established_visit"
	CompetingService  = "competing_service" // another practice bills remote monitoring for the patient during a span
)

// OrderKinds lists all kinds.
var OrderKinds = []string{OrderOfMonitoring, PlanOfCare, EstablishedVisit, CompetingService}

// Order is a practitioner's order, plan or established visit for a patient. It is never changed.
type Order struct{ core.BaseRecordProxy }

// OrderDraft is an order to record.
type OrderDraft struct {
	PatientID, Kind, Dated string // the day, YYYY-MM-DD
	Until                  string // last day of a competing service; "" if open
	AuthorID               string // a user's record id
	Text                   phi.Text
	OrderingProvider       *phi.Practitioner // who ordered, if not the author
	RecordedBy             string            // email address
}

// AddOrder records an order with the next number.
func AddOrder(tx core.App, d OrderDraft, now time.Time) (*Order, error) {
	order, err := newRecord[Order](tx, Orders, map[string]any{
		ColumnPatient: d.PatientID, "kind": d.Kind, "dated": d.Dated, "until": d.Until, "author": d.AuthorID, "text": d.Text.Reveal(), "ordering_provider": d.OrderingProvider.Plaintext(),
		"recorded_by": d.RecordedBy, "recorded_at": FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return order, wrap(tx.Save(order), "store order")
}

// PageOfOrders returns a page of a patient's orders, latest first, and the total.
func PageOfOrders(app core.App, patientID, kind string, offset, limit int) ([]*Order, int, error) {
	return pageOf[Order](app, Orders, AllOf(Conditions{}.Equal(ColumnPatient, patientID).Equal("kind", kind)), []string{"dated DESC", "id DESC"}, offset, limit)
}

// FirstOrder is the day of a patient's first order of a kind; "" if there is none.
type FirstOrder struct {
	Patient string `db:"patient"`
	Kind    string `db:"kind"`
	Dated   string `db:"dated"`
}

// FirstOrders returns the first order of each kind of the patients.
func FirstOrders(app core.App, ids []string) ([]FirstOrder, error) {
	return queryAll[FirstOrder](app, "find orders", `SELECT patient, kind, MIN(dated) AS dated FROM orders WHERE patient`+inIDs+` GROUP BY patient, kind`, idParams(ids))
}

// CompetingSpan is the span in which another practice bills remote monitoring for a patient; Until is "" if it is open.
type CompetingSpan struct {
	Patient string `db:"patient"`
	From    string `db:"dated"`
	Until   string `db:"until"`
}

// CompetingServices returns the competing spans of patients. Of several records with the same first day the last one counts, because records
// are never changed.
func CompetingServices(app core.App, ids []string) ([]CompetingSpan, error) {
	return queryAll[CompetingSpan](app, "find competing services", `SELECT patient, dated, until FROM orders o WHERE kind = '`+CompetingService+`' AND patient`+inIDs+`
		AND NOT EXISTS (SELECT 1 FROM orders l WHERE l.patient = o.patient AND l.kind = o.kind AND l.dated = o.dated AND l.id > o.id) ORDER BY patient, dated`, idParams(ids))
}

// OrdersOf returns a patient's orders up to a day, earliest first.
func OrdersOf(app core.App, patientID, until string) ([]*Order, error) {
	return listOf[Order](app, Orders, dbx.And(dbx.HashExp{ColumnPatient: patientID}, dbx.NewExp("dated <= {:until}", dbx.Params{"until": until})), "dated", "id")
}

// OrderingProvider returns who ordered, if not the author; nil for none.
func (o *Order) OrderingProvider() (*phi.Practitioner, error) {
	return phi.ParsePractitioner(o.GetString("ordering_provider"))
}

func (o *Order) Number() int64         { return Number(o.Id) }
func (o *Order) PatientID() string     { return o.GetString(ColumnPatient) }
func (o *Order) Kind() string          { return o.GetString("kind") }
func (o *Order) Dated() string         { return o.GetString("dated") }
func (o *Order) Until() string         { return o.GetString("until") }
func (o *Order) AuthorID() string      { return o.GetString("author") }
func (o *Order) Text() phi.Text        { return phi.Text(o.GetString("text")) }
func (o *Order) RecordedBy() string    { return o.GetString("recorded_by") }
func (o *Order) RecordedAt() time.Time { return instantOf(o, "recorded_at") }
