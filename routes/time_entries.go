package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
)

// timeView is a time entry as the contract shows it.
type timeView struct {
	ID              int64   `json:"id"`
	PatientID       string  `json:"patient_id"`
	PatientName     string  `json:"patient_name"`
	User            int64   `json:"user"`
	UserName        string  `json:"user_name"`
	Category        string  `json:"category"`
	Activity        *string `json:"activity"`
	ContactMethod   *string `json:"contact_method"`
	Source          string  `json:"source"`
	StartedAt       *string `json:"started_at"`
	EndedAt         *string `json:"ended_at"`
	DurationSeconds int     `json:"duration_seconds"`
	Running         bool    `json:"running"`
	AutoStopped     bool    `json:"auto_stopped"`
	Notes           *string `json:"notes"`
	Billed          bool    `json:"billed"`
	BillingEntryID  *string `json:"billing_entry_id"`
	EscalationID    *int64  `json:"escalation_id"`
	CreatedAt       *string `json:"created_at"`
	UpdatedAt       *string `json:"updated_at"`
}

func viewTimes(c *call, page []*collections.TimeEntry) ([]timeView, error) {
	seen, users := map[string]bool{}, map[string]bool{}
	for _, entry := range page {
		seen[entry.PatientID()], users[entry.UserRecordID()] = true, true
	}
	names, err := patients.Names(c.App, sortedKeys(seen))
	if err != nil {
		return nil, err
	}
	authors, err := billing.Providers(c.App, sortedKeys(users))
	if err != nil {
		return nil, err
	}
	views := make([]timeView, len(page))
	for i, entry := range page {
		views[i] = timeView{
			ID: entry.Number(), PatientID: entry.PatientID(), PatientName: names[entry.PatientID()].FirstLast(), User: collections.Number(entry.UserRecordID()),
			UserName: authors[entry.UserRecordID()], Category: entry.Category(), Activity: orNull(entry.Activity()),
			ContactMethod: orNull(entry.Contact()), Source: entry.Source(), StartedAt: instantOrNull(entry.StartedAt()),
			EndedAt: instantOrNull(entry.EndedAt()), DurationSeconds: entry.Seconds(), Running: entry.Running(), AutoStopped: entry.AutoStopped(),
			Notes: orNull(entry.Notes().Reveal()), Billed: entry.Billed(), BillingEntryID: orNull(entry.EntryID()),
			EscalationID: numberOrNull(entry.EscalationID()), CreatedAt: instantOrNull(entry.CreatedAt()), UpdatedAt: instantOrNull(entry.UpdatedAt()),
		}
	}
	return views, nil
}

func viewTime(c *call, entry *collections.TimeEntry) (timeView, error) {
	views, err := viewTimes(c, []*collections.TimeEntry{entry})
	if err != nil {
		return timeView{}, err
	}
	return views[0], nil
}

func (a *api) listTime(c *call) error {
	q := c.query()
	p := q.paging()
	between, month, patientID := q.between(), q.month("month"), q.patientID()
	category, user := q.oneOf("category", billing.Categories...), q.integer("user")
	if err := q.err(); err != nil {
		return err
	}
	filter := collections.TimeFilter{From: between.From, To: between.To, PatientID: patientID, Category: category, Own: c.changer()}
	if month.Start != "" {
		filter.MonthStart, filter.MonthEnd = a.Billing.Bounds(month)
	}
	if user != nil {
		filter.UserID = collections.NumberID(*user)
	}
	page, total, err := collections.PageOfTimeEntries(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
	views, err := viewTimes(c, page)
	if err != nil {
		return err
	}
	if err := recordShown(c, "TimeEntry", views, func(v timeView) string { return v.PatientID }); err != nil {
		return err
	}
	return list(c, p, total, views, unreadable)
}

// recordShown notes whose data a page showed.
func recordShown[T any](c *call, resourceType string, views []T, patientOf func(T) string) error {
	seen := map[string]bool{}
	for _, v := range views {
		seen[patientOf(v)] = true
	}
	if len(seen) == 0 {
		return nil
	}
	return c.recordRead(audit.PatientRead, resourceType, "", sortedKeys(seen)...)
}

// month is a calendar month, YYYY-MM; empty when left out.
func (q *query) month(name string) billing.Span {
	if !q.values.Has(name) {
		return billing.Span{}
	}
	span, ok := billing.MonthSpan(q.values.Get(name))
	if !ok {
		q.checks.Reject(name, "Must be a month, YYYY-MM.")
	}
	return span
}

func (a *api) logTime(c *call) error {
	var body billing.TimeBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks, c.Now)
	if err := checks.Err(); err != nil {
		return err
	}
	if err := a.reach(c, draft.PatientID); err != nil {
		return err
	}
	entry, err := a.Billing.LogTime(c.App, c.Caller.RecordID, draft, c.actor(), c.Now)
	return answerTime(c, entry, err, c.created)
}

func (a *api) startTimer(c *call) error {
	var body billing.TimeBody
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.ReadStart(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	if err := a.reach(c, draft.PatientID); err != nil {
		return err
	}
	entry, err := a.Billing.StartTimer(c.App, c.Caller.RecordID, draft, c.actor(), c.Now)
	return answerTime(c, entry, err, c.created)
}

func answerTime(c *call, entry *collections.TimeEntry, err error, answer func(any) error) error {
	if err != nil {
		return err
	}
	view, err := viewTime(c, entry)
	if err != nil {
		return err
	}
	return answer(view)
}

func (a *api) stopTimer(c *call) error {
	number, err := c.pathInteger("id")
	if err != nil {
		return err
	}
	var body billing.TimeBody
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	entry, err := a.Billing.StopTimer(c.App, number, c.Caller.RecordID, body, c.actor(), c.Now)
	return answerTime(c, entry, err, c.ok)
}

// changer is whose time the caller may change: "" for everybody's.
func (c *call) changer() string {
	if c.Scope == access.Own {
		return c.Caller.RecordID
	}
	return ""
}

func (a *api) changeTime(c *call) error {
	number, err := c.pathInteger("id")
	if err != nil {
		return err
	}
	var body billing.TimeBody
	if err := c.decode(&body); err != nil {
		return err
	}
	entry, err := a.Billing.ChangeTime(c.App, number, c.changer(), body, c.actor(), c.Now)
	return answerTime(c, entry, err, c.ok)
}

func (a *api) deleteTime(c *call) error {
	number, err := c.pathInteger("id")
	if err != nil {
		return err
	}
	if err := a.Billing.DeleteTime(c.App, number, c.changer(), c.actor(), c.Now); err != nil {
		return err
	}
	return c.noContent()
}

func (a *api) summariseTime(c *call) error {
	q := c.query()
	month, patientID := q.month("month"), q.patientID()
	if err := q.err(); err != nil {
		return err
	}
	if month.Start == "" {
		month, _ = billing.MonthSpan(a.Billing.Day(c.Now)[:7])
	}
	user := ""
	if c.Scope == access.Own {
		user = c.Caller.RecordID
	}
	if patientID != "" {
		if _, err := collections.FindPatient(c.App, patientID); collections.Missing(err) {
			return fault.Missing()
		} else if err != nil {
			return err
		}
	}
	results, err := a.Billing.TimeSummary(c.App, month, user, patientID, "")
	if err != nil {
		return err
	}
	if err := recordShown(c, "TimeEntry", results, func(m billing.MonthTime) string { return m.PatientID }); err != nil {
		return err
	}
	if results == nil {
		results = []billing.MonthTime{}
	}
	return c.ok(map[string]any{"month": month.Start[:7], "count": len(results), "results": results})
}
