package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Filter narrows a list of transmissions; zero values do not.
type Filter struct {
	Status, PatientID string
	// From and To bound the last attempt, else the creation; both inclusive.
	From, To time.Time
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

const lastTouched = "COALESCE(NULLIF(last_attempted_at, ''), created_at)"

// List returns a page of transmissions, newest first, and how many there are in all.
func List(app core.App, f Filter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "created_at DESC, id DESC"
	conditions := collections.Conditions{}.Equal("status", f.Status).Equal("patient", f.PatientID).Between(lastTouched, f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if (f != Filter{Status: f.Status}) {
		return conditions.PageOfPatients(app, collections.Transmissions, newestFirst, offset, limit)
	}
	err = app.DB().NewQuery(`SELECT COALESCE(SUM(transmissions), 0) FROM transmission_totals WHERE {:status} IN ('', status)`).
		Bind(dbx.Params{"status": f.Status}).Row(&total)
	if err != nil {
		return nil, 0, fmt.Errorf("count transmissions: %w", err)
	}
	return conditions.PageOfPatientsAmong(app, collections.Transmissions, newestFirst, offset, limit, total)
}

// Backlog counts what waits: pending, in processing, and failed with a retry to come.
func Backlog(app core.App) (pending, processing, awaitingRetry int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE `+waiting+`),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'processing'),
		(SELECT COUNT(*) FROM transmissions WHERE `+retrying+`)`).
		Row(&pending, &processing, &awaitingRetry)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("count backlog: %w", err)
	}
	return pending, processing, awaitingRetry, nil
}

// Find returns one transmission with its attempts, oldest first, or a not-found fault.
func Find(app core.App, id string) (*core.Record, []collections.TransmissionAttempt, error) {
	record, err := collections.FindTransmission(app, id)
	if collections.Missing(err) {
		return nil, nil, fault.Missing()
	}
	if err != nil {
		return nil, nil, err
	}
	ledger, err := collections.TransmissionLedger(app, id)
	return record, ledger, err
}

// Figures are how deliveries go: what waits, and what ended since a moment.
type Figures struct {
	Pending, Processing, AwaitingRetry int
	Transmitted, Failed                int       // since that moment; failed counts those that stand so now
	LastTransmitted                    time.Time // zero for never
}

// SuccessRate is the percentage of what ended well, to one decimal; 100 when nothing was sent.
// Source: docs/decisions/transmissions.md, "FHIR status".
func (f Figures) SuccessRate() float64 {
	if f.Transmitted+f.Failed == 0 {
		return 100
	}
	return vitals.RoundHalfUp(100*float64(f.Transmitted)/float64(f.Transmitted+f.Failed), 1)
}

// ReadFigures counts what waits now and what ended since a moment, the midnight of the practice.
func ReadFigures(app core.App, since time.Time) (f Figures, err error) {
	if f.Pending, f.Processing, f.AwaitingRetry, err = Backlog(app); err != nil {
		return f, err
	}
	var last string
	err = app.DB().NewQuery(`SELECT
		(SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted' AND last_attempted_at >= {:since}),
		(SELECT COUNT(*) FROM transmissions WHERE status = 'failed' AND last_attempted_at >= {:since}),
		(SELECT COALESCE(MAX(last_attempted_at), '') FROM transmissions WHERE status = 'transmitted')`).
		Bind(dbx.Params{"since": collections.Instant(since)}).Row(&f.Transmitted, &f.Failed, &last)
	if err != nil {
		return f, fmt.Errorf("count deliveries: %w", err)
	}
	f.LastTransmitted = collections.ParseInstant(last)
	return f, nil
}
