package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type timeEntryView struct {
	ID              int64   `json:"id"`
	PatientID       string  `json:"patient_id"`
	PatientName     string  `json:"patient_name"`
	User            int64   `json:"user"`
	UserName        string  `json:"user_name"`
	Category        string  `json:"category"`
	Activity        *string `json:"activity"`
	ContactMethod   *string `json:"contact_method"`
	Source          string  `json:"source"`
	Live            bool    `json:"live"`
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
	// RecordedAt is when the entry was recorded, which may be days after the time was spent.
	RecordedAt     *string `json:"recorded_at"`
	ToAttest       bool    `json:"needs_attestation"`
	AttestedBy     *string `json:"attested_by"`
	AttestedAt     *string `json:"attested_at"`
	OverlapSeconds int     `json:"overlap_seconds"`
}

func (a *api) viewTimes(app core.App, page []*collections.TimeEntry) ([]timeEntryView, error) {
	names, err := patients.Names(app, distinct(page, (*collections.TimeEntry).PatientID))
	if err != nil {
		return nil, err
	}
	authors, err := billing.ProviderNames(app, distinct(page, (*collections.TimeEntry).UserRecordID))
	if err != nil {
		return nil, err
	}
	views := make([]timeEntryView, len(page))
	for i, entry := range page {
		views[i] = timeEntryView{
			ID: entry.Number(), PatientID: entry.PatientID(), PatientName: names[entry.PatientID()].FullName(), User: collections.Number(entry.UserRecordID()),
			UserName: authors[entry.UserRecordID()], Category: entry.Category(), Activity: orNull(entry.Activity()),
			ContactMethod: orNull(entry.Contact()), Source: entry.Source(), StartedAt: instantOrNull(entry.StartedAt()),
			EndedAt: instantOrNull(entry.EndedAt()), DurationSeconds: entry.Seconds(), Running: entry.Running(), AutoStopped: entry.AutoStopped(),
			Notes: orNull(entry.Notes().Reveal()), Billed: entry.Billed(), BillingEntryID: orNull(entry.EntryID()),
			Live: a.Billing.IsLiveContact(entry), RecordedAt: instantOrNull(entry.CreatedAt()), ToAttest: entry.NeedsAttestation(),
			AttestedBy: orNull(entry.AttestedBy()), AttestedAt: instantOrNull(entry.AttestedAt()), OverlapSeconds: entry.OverlapSeconds(),
			EscalationID: numberOrNull(entry.EscalationID()), CreatedAt: instantOrNull(entry.CreatedAt()), UpdatedAt: instantOrNull(entry.UpdatedAt()),
		}
	}
	return views, nil
}

func (a *api) listTime(c *web.Call) error {
	q, p := c.Listing()
	between, month, patientID := q.Between(), monthOf(q, "month"), q.PatientID()
	category, user := q.OneOf("category", billing.Categories...), q.Integer("user")
	if err := q.Err(); err != nil {
		return err
	}
	filter := collections.TimeFilter{From: between.From, To: between.To, PatientID: patientID, Category: category, Own: timeEntryOwner(c)}
	if month.Start != "" {
		filter.MonthStart, filter.MonthEnd = a.Billing.TimeRange(month)
	}
	if user != nil {
		filter.UserID = collections.NumberID(*user)
	}
	return list(c, p, audit.ResourceTimeEntry, a.viewTimes)(collections.PageOfTimeEntries(c.App, filter, p.Offset(), p.Size))
}

// monthOf reads a calendar month, YYYY-MM; empty if left out.
func monthOf(q *web.Query, name string) billing.Span {
	if !q.Has(name) {
		return billing.Span{}
	}
	span, ok := billing.MonthSpan(q.Get(name))
	if !ok {
		q.Reject(name, "Must be a month, YYYY-MM.")
	}
	return span
}

// monthIn is monthOf with the current month as the default.
func (a *api) monthIn(c *web.Call, q *web.Query, name string) billing.Span {
	month := monthOf(q, name)
	if month.Start == "" {
		month, _ = billing.MonthSpan(a.Billing.Day(c.Now)[:7])
	}
	return month
}

func (a *api) logTime(c *web.Call) error {
	draft, err := web.Read(c, func(body billing.TimeBody, checks *validate.Checks) billing.TimeDraft {
		return body.Read(checks, c.Now)
	})
	if err != nil {
		return err
	}
	if err := a.authorizePatient(c, draft.PatientID); err != nil {
		return err
	}
	return show(c, c.Created, a.viewTimes)(a.Billing.LogTime(c.App, c.Caller.RecordID, draft, c.Actor(), c.Now))
}

func (a *api) startTimer(c *web.Call) error {
	draft, err := web.Read(c, billing.TimeBody.ReadStart)
	if err != nil {
		return err
	}
	if err := a.authorizePatient(c, draft.PatientID); err != nil {
		return err
	}
	return show(c, c.Created, a.viewTimes)(a.Billing.StartTimer(c.App, c.Caller.RecordID, draft, c.Actor(), c.Now))
}

func (a *api) stopTimer(c *web.Call, number int64) error {
	var body billing.TimeBody
	if err := c.DecodeOptional(&body); err != nil {
		return err
	}
	return show(c, c.OK, a.viewTimes)(a.Billing.StopTimer(c.App, number, c.Caller.RecordID, body, c.Actor(), c.Now))
}

// timeEntryOwner returns the owner of the entries that the caller may change or sum up; "" means every user.
func timeEntryOwner(c *web.Call) string {
	if c.Reach == authz.Own {
		return c.Caller.RecordID
	}
	return ""
}

func (a *api) changeTime(c *web.Call, number int64) error {
	var body billing.TimeBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	return show(c, c.OK, a.viewTimes)(a.Billing.UpdateTime(c.App, number, timeEntryOwner(c), body, c.Actor(), c.Now))
}

func (a *api) attestTime(c *web.Call, number int64) error {
	return change(c, number, fromOptionalBody(billing.AttestBody.Read), a.Billing.AttestTime, show(c, c.OK, a.viewTimes))
}

func (a *api) deleteTime(c *web.Call, number int64) error {
	return c.NoContent(a.Billing.DeleteTime(c.App, number, timeEntryOwner(c), c.Actor(), c.Now))
}

func (a *api) summarizeTime(c *web.Call) error {
	q := c.Query()
	month, patientID := a.monthIn(c, q, "month"), q.PatientID()
	if err := q.Err(); err != nil {
		return err
	}
	if patientID != "" {
		if _, err := collections.FindPatient(c.App, patientID); err != nil {
			return fault.OrMissing(err)
		}
	}
	results, err := a.Billing.TimeSummary(c.App, month, timeEntryOwner(c), patientID, "")
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceTimeEntry, "", results, func(m billing.MonthTime) string { return m.PatientID }); err != nil {
		return err
	}
	if results == nil {
		results = []billing.MonthTime{}
	}
	return c.OK(map[string]any{"month": month.Start[:7], "count": len(results), "results": results})
}
