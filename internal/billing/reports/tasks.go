package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/icd10"
)

// The tasks.
const (
	TaskReview    = "review"
	TaskAttest    = "attest"
	TaskSubmit    = "submit"
	TaskResubmit  = "resubmit"
	TaskEvidence  = "evidence_changed"
	TaskVoid      = billing.VoidRequested
	TaskRefund    = billing.RefundDue
	TaskCredit    = "credit"
	TaskBalance   = "open_balance"
	TaskSecondary = "secondary_due"
)

// TaskItem is an entry that waits for a user.
type TaskItem struct {
	EntryID     string `json:"entry_id"`
	Task        string `json:"task"`
	PatientName string `json:"patient_name"` // set by the route
	CPTCode     string `json:"cpt_code"`
	AgeDays     int    `json:"age_days"`
	PatientID   string `json:"-"`
	// RepayBy is when a payment must be refunded; only if evidence changed.
	RepayBy *string `json:"repay_by"`
	since   string
}

// TasksBody is the report of pending work.
type TasksBody struct {
	PendingReviews             int        `json:"pending_reviews"`
	SubmissionBacklog          int        `json:"submission_backlog"`
	DeniedAwaitingResubmission int        `json:"denied_awaiting_resubmission"`
	AttestationNeeded          int        `json:"attestation_needed"`
	EvidenceChanged            int        `json:"evidence_changed"`
	VoidRequested              int        `json:"void_requested"`
	RefundDue                  int        `json:"refund_due"`
	Credits                    int        `json:"credits"`              // claims with a credit balance
	OpenBalances               int        `json:"open_balances"`        // paid claims with an open amount
	SecondaryDue               int        `json:"secondary_due"`        // claims to send to the second payer
	UnpostedRemittances        int        `json:"unposted_remittances"` // of the whole practice, for any query
	MissingCodeList            int        `json:"missing_code_list"`    // 1 if the ICD-10-CM list of the current fiscal year is missing
	MissingFeeList             int        `json:"missing_fee_list"`     // 1 if the final list of fees is missing, from November that of the next year
	MissingFeeCodes            []string   `json:"missing_fee_codes"`    // the codes that it lacks
	MissingRules               int        `json:"missing_rules"`        // 1 if this version lacks the rules of the year, from November those of the next
	EMRCorrections             int        `json:"emr_corrections"`      // of the whole practice, for any query
	OldestPendingDays          *int       `json:"oldest_pending_days"`
	Items                      []TaskItem `json:"items"`
}

// maxItems is how many entries the report lists. Source: docs/decisions/billing.md, "Report shapes".
const maxItems = 100

// pendingSince is when an entry became pending, as its index computes it.
const pendingSince = `(CASE lifecycle_status WHEN 'pending_review' THEN created_at WHEN 'reviewed' THEN reviewed_at ELSE denial_date END)`

func (m *builder) tasks() (any, error) {
	sums, err := m.totals(billing.ByStatus)
	if err != nil {
		return nil, err
	}
	body := TasksBody{Items: []TaskItem{}}
	body.countStates(sums)
	if body.AttestationNeeded, err = m.countToAttest(); err != nil {
		return nil, err
	}
	for _, state := range []string{billing.PendingReview, billing.Reviewed, billing.Denied} {
		items, err := m.pendingItems(state)
		if err != nil {
			return nil, err
		}
		if state == billing.PendingReview && len(items) > 0 {
			body.OldestPendingDays = &items[0].AgeDays
		}
		body.Items = append(body.Items, items...)
	}
	changed, err := m.evidenceChangedItems()
	if err != nil {
		return nil, err
	}
	body.EvidenceChanged, body.Items = len(changed), append(body.Items, changed...)
	if body.EMRCorrections, err = collections.CountCorrectionsDue(m.app); err != nil {
		return nil, err
	}
	for _, state := range []string{billing.VoidRequested, billing.RefundDue} {
		undoing, err := m.undoItems(state)
		if err != nil {
			return nil, err
		}
		body.Items = append(body.Items, undoing...)
	}
	credits, count, err := m.creditItems()
	if err != nil {
		return nil, err
	}
	body.Credits, body.Items = count, append(body.Items, credits...)
	balances, count, err := m.balanceItems()
	if err != nil {
		return nil, err
	}
	body.OpenBalances, body.Items = count, append(body.Items, balances...)
	second, count, err := m.countedItems(TaskSecondary, "claims to the second payer", "secondary_status = 'due'", "secondary")
	if err != nil {
		return nil, err
	}
	body.SecondaryDue, body.Items = count, append(body.Items, second...)
	if body.UnpostedRemittances, err = collections.OpenRemittances(m.app); err != nil {
		return nil, err
	}
	if err := m.countMissingLists(&body); err != nil {
		return nil, err
	}
	body.keepOldest()
	return body, nil
}

// keepOldest sorts the items, oldest first, and keeps as many as the report lists.
func (body *TasksBody) keepOldest() {
	slices.SortStableFunc(body.Items, func(a, b TaskItem) int {
		return cmp.Or(cmp.Compare(b.AgeDays, a.AgeDays), cmp.Compare(a.since, b.since))
	})
	body.Items = body.Items[:min(len(body.Items), maxItems)]
}

// countStates sets the counts of entries by their state.
func (body *TasksBody) countStates(sums []billing.Totals) {
	for _, s := range sums {
		switch s.Status {
		case billing.PendingReview:
			body.PendingReviews = s.Claims
		case billing.Reviewed:
			body.SubmissionBacklog = s.Claims
		case billing.Denied:
			body.DeniedAwaitingResubmission = s.Claims
		case billing.VoidRequested:
			body.VoidRequested = s.Claims
		case billing.RefundDue:
			body.RefundDue = s.Claims
		}
	}
}

// countToAttest counts the entries with escalation time to attest, of any day: their index contains only those, by day.
func (m *builder) countToAttest() (count int, err error) {
	where, params := m.where("lifecycle_status = 'pending_review'", "instr(warnings, 'attest_interaction') > 0", "service_date > ''")
	if err := m.app.DB().NewQuery("SELECT COUNT(*) FROM billing_entries" + m.indexedBy("attest") + " WHERE " + where).Bind(params).Row(&count); err != nil {
		return 0, fmt.Errorf("count entries to attest: %w", err)
	}
	return count, nil
}

// pendingItems returns the entries that have been in a state the longest; entries of one billing run, which all entered it at the same time,
// come in table order, as in the index.
func (m *builder) pendingItems(state string) ([]TaskItem, error) {
	where, params := m.where("lifecycle_status = '" + state + "'")
	params["limit"] = maxItems
	task := map[string]string{billing.PendingReview: TaskReview, billing.Reviewed: TaskSubmit, billing.Denied: TaskResubmit}[state]
	return m.listItems(task, "waiting entries", `SELECT id, patient, cpt_code, `+pendingSince+` AS since,
			COALESCE(instr(warnings, 'attest_interaction') > 0, FALSE) AS attest
		FROM billing_entries`+m.indexedBy("waiting")+` WHERE `+where+` AND lifecycle_status IN ('pending_review', 'reviewed', 'denied')
		ORDER BY `+pendingSince+`, _rowid_ LIMIT +{:limit}`, params)
}

// taskRow is an entry that needs work, as the queries below select it.
type taskRow struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Code    string `db:"cpt_code"`
	Since   string `db:"since"`
	RepayBy string `db:"repay_by"`
	Attest  bool   `db:"attest"`
}

// listItems returns the items of a task from a query; what names the entries in an error.
func (m *builder) listItems(task, what, sql string, params dbx.Params) (items []TaskItem, err error) {
	var rows []taskRow
	if err := m.app.DB().NewQuery(sql).Bind(params).All(&rows); err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	for _, row := range rows {
		item := TaskItem{
			EntryID: row.ID, PatientID: row.Patient, CPTCode: row.Code, Task: task, since: row.Since, AgeDays: m.daysSince(row.Since), RepayBy: optional(row.RepayBy),
		}
		if row.Attest && task == TaskReview {
			item.Task = TaskAttest
		}
		items = append(items, item)
	}
	return items, nil
}

// evidenceChangedItems returns the entries with evidence that changed after submission and that are not being undone.
func (m *builder) evidenceChangedItems() ([]TaskItem, error) {
	where, params := m.where("evidence_changed_at != ''", "lifecycle_status IN ('submitted', 'appealed', 'paid')")
	items, err := m.listItems(TaskEvidence, "entries with changed evidence", "SELECT id, patient, cpt_code, evidence_changed_at AS since, repay_by FROM billing_entries"+
		" INDEXED BY idx_billing_entries_changed WHERE "+where+" ORDER BY evidence_changed_at, id", params)
	for i, item := range items {
		if item.RepayBy == nil {
			items[i].RepayBy = new("") // the contract has a text for this task
		}
	}
	return items, err
}

// undoItems returns the entries of a state that are being undone, least recently changed first.
func (m *builder) undoItems(state string) ([]TaskItem, error) {
	where, params := m.where("lifecycle_status = '" + state + "'")
	params["limit"] = maxItems
	return m.listItems(state, "entries being undone", `SELECT id, patient, cpt_code, updated_at AS since, repay_by FROM billing_entries`+m.indexedBy("undoing")+
		` WHERE `+where+` AND lifecycle_status IN ('void_requested', 'refund_due') ORDER BY updated_at, id LIMIT +{:limit}`, params)
}

// daysSince returns the practice days since a stored instant or day; 0 for the future or an unknown day.
func (m *builder) daysSince(stored string) int {
	day := stored
	if len(stored) > len(time.DateOnly) {
		day = m.engine.Day(collections.ParseInstant(stored))
	}
	if billing.ParseDay(day).IsZero() {
		return 0
	}
	return max(0, billing.DaysBetween(day, m.today))
}

// creditCondition selects claims with a credit balance, in the words of their index; the rule is [billing.CreditBalance].
const creditCondition = `lifecycle_status IN ('paid', 'denied') AND paid_total_cents > 0
	AND charge_cents < paid_total_cents + adjusted_cents + patient_responsibility_cents`

// creditItems returns the claims with a credit balance, least recently changed first, and their number. Source: docs/decisions/billing.md, "Credits".
func (m *builder) creditItems() (items []TaskItem, count int, err error) {
	return m.countedItems(TaskCredit, "claims with a credit", creditCondition, "credit")
}

// balanceCondition selects paid claims with an open amount, in the words of their index.
const balanceCondition = `lifecycle_status = 'paid' AND lifecycle_status IN ('submitted', 'paid', 'denied', 'appealed', 'void_requested', 'refund_due')
	AND charge_cents != paid_total_cents + adjusted_cents + patient_responsibility_cents
	AND charge_cents > paid_total_cents + adjusted_cents + patient_responsibility_cents`

// balanceItems returns the paid claims with an open amount, least recently changed first, and their number. Source: docs/decisions/billing.md,
// "Open balances".
func (m *builder) balanceItems() (items []TaskItem, count int, err error) {
	return m.countedItems(TaskBalance, "claims with an open amount", balanceCondition, "balance")
}

// countedItems returns the items of a task that a condition selects, least recently changed first, and their number.
func (m *builder) countedItems(task, what, condition, index string) (items []TaskItem, count int, err error) {
	where, params := m.where(condition)
	from := " FROM billing_entries" + m.indexedBy(index) + " WHERE " + where
	if err := m.app.DB().NewQuery("SELECT COUNT(*)" + from).Bind(params).Row(&count); err != nil || count == 0 {
		return nil, 0, err
	}
	params["limit"] = maxItems
	items, err = m.listItems(task, what, "SELECT id, patient, cpt_code, updated_at AS since"+from+" ORDER BY updated_at, id LIMIT +{:limit}", params)
	return items, count, err
}

// countMissingLists counts the lists that the practice has to import.
func (m *builder) countMissingLists(body *TasksBody) error {
	fees, err := m.engine.MissingFees(m.app, m.now)
	if err != nil {
		return err
	}
	body.MissingFeeCodes = append([]string{}, fees...)
	body.MissingRules = min(m.engine.MissingRulesYear(m.now), 1)
	codes, err := icd10.MissingList(m.app, m.today)
	body.MissingFeeList, body.MissingCodeList = min(len(fees), 1), min(len(codes), 1)
	return err
}
