// Package emrcontext reads what a patient's chart in the EMR has that monitoring needs: conditions, medicines, encounters, orders, coverage and
// allergies. It stores the result sealed, and proposes values that the patient's record lacks. A person accepts or dismisses each; only a
// hold during a stay in hospital is set without a person, where the practice has chosen so. Nothing replaces what staff entered. Requests to the
// EMR are outside of transactions. The rules are in docs/decisions/emr.md, "Context".
package emrcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Options are the settings of an Engine.
type Options struct {
	Client   *emr.Client
	Enabled  bool          // VIGIL_EMR_CONTEXT
	AutoHold bool          // VIGIL_EMR_AUTO_HOLD
	Stale    time.Duration // age at which an opened chart is read again
	Zone     *time.Location
	// MaxRefresh bounds the time of reading one chart; 0 for a minute.
	MaxRefresh time.Duration
}

// maxRefresh is the default of MaxRefresh.
const maxRefresh = time.Minute

// Engine reads charts. It is safe for concurrent use; concurrent reads of one chart share the result.
type Engine struct {
	Options
	flight singleflight.Group
}

// New returns an engine. It sends no request.
func New(o Options) *Engine { return &Engine{Options: o} }

// IsEnabled reports whether charts are read.
func (e *Engine) IsEnabled() bool { return e != nil && e.Enabled && e.Client.Configured() }

// State is what a caller can expect of a context.
type State string

// The states.
const (
	Off      State = "off"      // the setting is off, or there is no EMR
	Unlinked State = "unlinked" // the patient has no record in the EMR
	Stale    State = "stale"    // never read, or too long ago: refresh it
	Current  State = "current"
)

// Proposal is an open proposal.
type Proposal struct {
	concealed
	ID     int64  `json:"id"`
	Kind   string `json:"kind"`
	Value  Value  `json:"value"`
	Source string `json:"source"`
	Date   string `json:"date"`
}

// View is the context of a patient.
type View struct {
	concealed
	State     State
	FetchedAt time.Time
	Content   Content
	Proposals []Proposal
}

// Read returns the stored context of a patient, without a request to the EMR. A context of another record of the EMR is not returned: the link
// was corrected since.
func (e *Engine) Read(app core.App, patient *collections.Patient, now time.Time) (v View, err error) {
	v = View{State: Off, Content: emptyContent(), Proposals: []Proposal{}}
	switch {
	case !e.IsEnabled():
		return v, nil
	case patient.ExternalID() == "":
		v.State = Unlinked
		return v, nil
	}
	v.State = Stale
	content, fetched, err := storedContent(app, patient)
	if err != nil || fetched.IsZero() {
		return v, err
	}
	v.Content, v.FetchedAt = content, fetched
	if now.Sub(fetched) < e.Stale {
		v.State = Current
	}
	f, err := gatherFacts(app, patient, Content{}, e.Zone)
	if err != nil {
		return v, err
	}
	made, err := collections.EMRProposalsOf(app, patient.Id, patient.ExternalID())
	if err != nil {
		return v, err
	}
	for _, m := range made {
		if p, ok := stored(m); ok && m.Status() == collections.ProposalOpen && f.needs(p, now) {
			v.Proposals = append(v.Proposals, Proposal{ID: m.Number(), Kind: p.kind, Value: p.value, Source: p.source, Date: p.dated})
		}
	}
	return v, nil
}

// storedContent returns the context of the record that the patient is linked to; the time is zero if there is none.
func storedContent(app core.App, patient *collections.Patient) (c Content, fetched time.Time, err error) {
	found, err := collections.FindEMRContext(app, patient.Id)
	if collections.IsNotFound(err) || collections.IsUnreadable(err) { // the EMR has it
		return emptyContent(), time.Time{}, nil
	}
	if err != nil || found.EMRID() != patient.ExternalID() {
		return emptyContent(), time.Time{}, err
	}
	if c, err = openContent(found.Content()); err != nil {
		return c, time.Time{}, nil //nolint:nilerr // damaged content is read again
	}
	return c, found.FetchedAt(), nil
}

// Refresh reads the chart of a patient and stores what it found. An unlinked patient is an invalid_state fault; a failure of the EMR is an
// *emr.Error, and what an earlier read found stays.
func (e *Engine) Refresh(ctx context.Context, app core.App, patientID string, clock func() time.Time) error {
	if !e.IsEnabled() {
		return fault.State("emr_context_off", "Reading charts from the EMR is off.")
	}
	_, err, _ := e.flight.Do(patientID, func() (any, error) { return nil, e.refresh(ctx, app, patientID, clock) })
	return err
}

func (e *Engine) refresh(ctx context.Context, app core.App, patientID string, clock func() time.Time) error {
	patient, err := collections.FindPatient(app, patientID)
	if err != nil {
		return fault.OrMissing(err)
	}
	emrID := patient.ExternalID()
	if emrID == "" {
		return fault.State("invalid_state", "The patient is not linked to a record of the EMR.")
	}
	before, fetched, err := storedContent(app, patient)
	if err != nil {
		return err
	}
	content, failure := readChart(ctx, e.Client, emrID, before, cmp.Or(e.MaxRefresh, maxRefresh), clock())
	now := clock()
	if failure != nil && ctx.Err() != nil {
		return failure // the caller left: the EMR was not tried
	}
	if failure != nil {
		return errors.Join(failure, noteAttempt(app, patientID, emrID, before, fetched, now))
	}
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, patientID)
		if collections.IsNotFound(err) || err == nil && patient.ExternalID() != emrID { // deleted, or the link was corrected in the meantime
			return nil
		}
		if err != nil {
			return err
		}
		if err := storeContent(tx, patientID, emrID, content, now, now); err != nil {
			return err
		}
		return e.update(tx, patient, content, now)
	})
	if err != nil {
		return errors.Join(err, noteAttempt(app, patientID, emrID, before, fetched, now))
	}
	return nil
}

func storeContent(tx core.App, patientID, emrID string, c Content, fetched, tried time.Time) error {
	sealed, err := c.seal()
	if err != nil {
		return err
	}
	return collections.StoreEMRContext(tx, patientID, emrID, sealed, fetched, tried)
}

// noteAttempt records a failed attempt, so that the next run of the job continues with other patients.
func noteAttempt(app core.App, patientID, emrID string, before Content, fetched, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error { return storeContent(tx, patientID, emrID, before, fetched, now) })
}

// The pace of the nightly job.
const (
	// refreshAfter is how old a chart is when the job reads it again.
	refreshAfter = 20 * time.Hour
	// perNight is how many runs of a night can read all charts, and minPerRun the least that a run reads.
	perNight  = 20
	minPerRun = 20
	// maxFailures ends a run: the EMR is away.
	maxFailures = 3
)

// RefreshStale reads the charts that were not read since yesterday, the stalest first, a part of them in each run. A failed one goes to the end of
// the queue; a run ends when the EMR does not answer. The error joins the failures that are not the EMR's.
func (e *Engine) RefreshStale(ctx context.Context, app core.App, clock func() time.Time) (read, failed int, err error) {
	linked, err := collections.CountLinkedPatients(app)
	if err != nil {
		return 0, 0, err
	}
	ids, err := collections.PatientsWithStaleContext(app, clock().Add(-refreshAfter), max(minPerRun, linked/perNight+1))
	if err != nil {
		return 0, 0, err
	}
	var faults error
	inARow := 0
	for _, id := range ids {
		if ctx.Err() != nil {
			return read, failed, errors.Join(faults, context.Cause(ctx))
		}
		if err := e.Refresh(ctx, app, id, clock); err != nil {
			if _, isEMR := errors.AsType[*emr.Error](err); !isEMR {
				failed, faults = failed+1, errors.Join(faults, fmt.Errorf("read a chart: %w", err))
				continue
			}
			if failed, inARow = failed+1, inARow+1; inARow == maxFailures {
				return read, failed, faults
			}
			continue
		}
		read, inARow = read+1, 0
	}
	return read, failed, faults
}

// RecordRefresh audits that a person had a chart read.
func RecordRefresh(app core.App, patientID string, by audit.Actor, now time.Time) error {
	return audit.Append(app, audit.Entry{
		Event: audit.EMRContextRefresh, Actor: by, ResourceType: audit.ResourceEMRContext, ResourceID: patientID, PatientID: patientID,
	}, now)
}
