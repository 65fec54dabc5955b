package reports

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// ProviderRow is the work of a rendering provider: distinct patients with entries, and the provider's own interactive time.
type ProviderRow struct {
	ProviderID         *int64        `json:"provider_id"`
	Provider           string        `json:"provider"`
	PatientsManaged    int           `json:"patients_managed"`
	Claims             int           `json:"claims"`
	Revenue            billing.Cents `json:"revenue"`
	RevenuePerPatient  billing.Cents `json:"revenue_per_patient"`
	InteractiveMinutes int           `json:"interactive_minutes"`
}

// ProductivityBody is the report of providers.
type ProductivityBody struct {
	Results []ProviderRow `json:"results"`
}

func (m *builder) productivity() (any, error) {
	sums, names, err := m.rankedTotals(billing.ByProvider, m.providers)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, s := range sums {
		ids = append(ids, s.Provider)
	}
	managed, err := m.patientsManaged(ids)
	if err != nil {
		return nil, err
	}
	minutes, err := m.interactiveMinutes(ids)
	body := ProductivityBody{Results: []ProviderRow{}}
	for _, s := range sums {
		n := managed[s.Provider]
		body.Results = append(body.Results, ProviderRow{recordNumber(s.Provider), names[s.Provider], n, s.Claims, s.Amount, averageOf(s.Amount, n), minutes[s.Provider]})
	}
	return body, err
}

// idCounts is a count for each id.
type idCounts []struct {
	ID    string `db:"id"`
	Count int    `db:"n"`
}

func (c idCounts) byID() map[string]int {
	byID := map[string]int{}
	for _, row := range c {
		byID[row.ID] = row.Count
	}
	return byID
}

// jsonList encodes ids as JSON; strings always encode.
func jsonList(ids []string) string {
	list, _ := json.Marshal(ids)
	return string(list)
}

func (m *builder) patientsManaged(userIDs []string) (map[string]int, error) {
	where, params := m.where("rendering_provider = j.value", "lifecycle_status != 'voided'")
	params["ids"] = jsonList(userIDs)
	var rows idCounts
	err := m.app.DB().NewQuery("SELECT j.value AS id, (SELECT COUNT(DISTINCT patient) FROM billing_entries WHERE " + where + ") AS n FROM json_each({:ids}) j").
		Bind(params).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("count patients of providers: %w", err)
	}
	return rows.byID(), nil
}

func (m *builder) interactiveMinutes(userIDs []string) (map[string]int, error) {
	from, to := m.engine.TimeRange(billing.Span{Start: m.q.From, End: m.q.To})
	params := dbx.Params{"ids": jsonList(userIDs), "from": collections.FormatInstant(from), "to": collections.FormatInstant(to)}
	where := ""
	if m.q.PatientID != "" {
		where, params["patient"] = " AND +patient = {:patient}", m.q.PatientID
	}
	var rows idCounts
	err := m.app.DB().NewQuery(`SELECT user AS id, CAST(SUM(duration_seconds) AS INTEGER) / 60 AS n FROM time_entries
		WHERE user IN (SELECT value FROM json_each({:ids})) AND started_at >= {:from} AND started_at < {:to} AND +category = 'interactive'
			AND ended_at != ''` + where + ` GROUP BY user`).Bind(params).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("sum time of providers: %w", err)
	}
	return rows.byID(), nil
}
