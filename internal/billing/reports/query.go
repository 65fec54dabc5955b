package reports

import (
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
)

// Query is what a report is asked. From and To are practice days, both included; "" is open. nil and "" leave a filter out; a pointer to "" is
// self-pay, or no provider. Record ids.
type Query struct {
	From, To        string
	Payer, Provider *string
	CPTCode         string
	PatientID       string
	Offset, Limit   int // of patient-summary; no limit for 0
}

// key is the query as text, for the cache.
func (q Query) key() string {
	text := func(id *string) string {
		if id == nil {
			return "any"
		}
		return *id
	}
	return fmt.Sprintf("%q", []string{q.From, q.To, text(q.Payer), text(q.Provider), q.CPTCode, q.PatientID})
}

// where is the query as a condition on billing_entries; states are those in question.
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

// indexedBy makes a query use an index that holds all it asks for; SQLite, which counts the
// rows that it reads and not what each costs, would choose a shorter one and look at every entry. The entries of one patient are few.
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
