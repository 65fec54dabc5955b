package reports

import (
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
)

// Query selects the data of a report. From and To are practice days, both included; "" is open. nil and "" omit a criterion; a pointer to ""
// means self-pay, or no provider. Ids are record ids.
type Query struct {
	From, To        string
	Payer, Provider *string
	CPTCode         string
	PatientID       string
	Offset, Limit   int // of patient-summary; 0 is no limit
}

// key returns the query as a cache key.
func (q Query) key() string {
	text := func(id *string) string {
		if id == nil {
			return "any"
		}
		return *id
	}
	return fmt.Sprintf("%q", []string{q.From, q.To, text(q.Payer), text(q.Provider), q.CPTCode, q.PatientID})
}

// where returns the query as a condition on billing_entries, after other conditions.
func (m *builder) where(conditions ...string) (string, dbx.Params) {
	params := dbx.Params{}
	for _, f := range []struct {
		column, compare string
		value           *string
	}{
		{"service_date", ">=", optional(m.q.From)},
		{"service_date", "<=", optional(m.q.To)},
		{"cpt_code", "=", optional(m.q.CPTCode)},
		{"patient", "=", optional(m.q.PatientID)},
		{"payer", "=", m.q.Payer},
		{"rendering_provider", "=", m.q.Provider},
	} {
		if f.value != nil {
			name := fmt.Sprint("q", len(params))
			conditions = append(conditions, f.column+" "+f.compare+" {:"+name+"}")
			params[name] = *f.value
		}
	}
	return strings.Join(conditions, " AND "), params
}

// indexedBy makes a query use a covering index; SQLite, which counts rows and not their cost, would choose a shorter one and read every entry. A
// single patient has few entries.
func (m *builder) indexedBy(index string) string {
	if m.q.PatientID != "" {
		return ""
	}
	return " INDEXED BY idx_billing_entries_" + index
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
