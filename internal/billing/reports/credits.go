package reports

import (
	"fmt"
)

// creditCondition is what makes a claim one with a credit, in the words of the index of such claims; the rule is that of [billing.Credit].
const creditCondition = `lifecycle_status IN ('paid', 'denied') AND paid_total_cents > 0
	AND charge_cents < paid_total_cents + adjusted_cents + patient_responsibility_cents`

// creditItems are the claims that were paid too much, those first with which nothing was done the longest, and how many there are.
// Source: docs/decisions/billing.md, "Credits".
func (m *builder) creditItems() (items []TaskItem, count int, err error) {
	where, params := m.where(creditCondition)
	from := " FROM billing_entries" + m.indexedBy("credit") + " WHERE " + where
	if err := m.app.DB().NewQuery("SELECT COUNT(*)" + from).Bind(params).Row(&count); err != nil || count == 0 {
		return nil, 0, err
	}
	params["limit"] = maxItems
	var rows []struct {
		ID      string `db:"id"`
		Patient string `db:"patient"`
		Code    string `db:"cpt_code"`
		Since   string `db:"updated_at"`
	}
	err = m.app.DB().NewQuery("SELECT id, patient, cpt_code, updated_at" + from + " ORDER BY updated_at, id LIMIT +{:limit}").Bind(params).All(&rows)
	if err != nil {
		return nil, 0, fmt.Errorf("list claims with a credit: %w", err)
	}
	for _, row := range rows {
		items = append(items, TaskItem{
			EntryID: row.ID, PatientID: row.Patient, CPTCode: row.Code, Task: TaskCredit, since: row.Since, AgeDays: m.daysSince(row.Since),
		})
	}
	return items, count, nil
}
