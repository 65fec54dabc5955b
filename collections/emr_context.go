package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// EMRContext is what the service read of a patient's chart in the EMR.
type EMRContext struct{ core.BaseRecordProxy }

func (c *EMRContext) EMRID() string        { return c.GetString("emr_id") } // the EMR's id of the chart's patient
func (c *EMRContext) FetchedAt() time.Time { return instantOf(c, "fetched_at") }
func (c *EMRContext) Content() phi.Text    { return phi.Text(c.GetString("content")) } // JSON

// FindEMRContext finds the context of a patient.
func FindEMRContext(app core.App, patientID string) (*EMRContext, error) {
	return findReadable[EMRContext](app, EMRContexts, dbx.HashExp{"patient": patientID})
}

// StoreEMRContext replaces the context of a patient. Content that cannot be opened is replaced too: the EMR has it.
func StoreEMRContext(tx core.App, patientID, emrID string, content phi.Text, fetched, tried time.Time) error {
	if err := remove(tx, "remove the EMR context", EMRContexts, dbx.HashExp{"patient": patientID}); err != nil {
		return err
	}
	_, err := store(tx, "store the EMR context", EMRContexts, map[string]any{
		"patient": patientID, "emr_id": emrID, "content": content.Reveal(), "fetched_at": FormatInstant(fetched), "tried_at": FormatInstant(tried),
	})
	return err
}

// PatientsWithStaleContext returns the active linked patients with a chart that was not read or tried since a time; the stalest first.
func PatientsWithStaleContext(app core.App, before time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find charts to read", `SELECT p.id FROM patients p LEFT JOIN emr_contexts c ON c.patient = p.id
		WHERE p.external_id != '' AND p.active AND p.deleted_at = ''
			AND (c.patient IS NULL OR c.emr_id != p.external_id OR c.tried_at < {:before})
		ORDER BY COALESCE(c.tried_at, ''), p.id LIMIT +{:limit}`, dbx.Params{"before": FormatInstant(before), "limit": limit})
}

// CountLinkedPatients counts the active patients with a record in the EMR.
func CountLinkedPatients(app core.App) (int, error) {
	return queryValue[int](app, "count linked patients", `SELECT COUNT(*) FROM patients WHERE external_id != '' AND active AND deleted_at = ''`, nil)
}

// The states of a proposal.
const (
	ProposalOpen      = "open"
	ProposalAccepted  = "accepted"
	ProposalDismissed = "dismissed"
	ProposalWithdrawn = "withdrawn" // the chart no longer supports it
)

// EMRProposal is a value of the chart that a person may take into the patient's record.
type EMRProposal struct{ core.BaseRecordProxy }

// EMRProposalDraft is a proposal to store.
type EMRProposalDraft struct {
	PatientID, EMRID, Kind, Source, Dated string
	Value                                 phi.Text // JSON
}

// AddEMRProposal stores an open proposal under the next number.
func AddEMRProposal(tx core.App, d EMRProposalDraft, now time.Time) (*EMRProposal, error) {
	p, err := newRecord[EMRProposal](tx, EMRProposals, map[string]any{
		"patient": d.PatientID, "emr_id": d.EMRID, "kind": d.Kind, "status": ProposalOpen, "value": d.Value.Reveal(), "source": d.Source,
		"dated": d.Dated, "proposed_at": FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return p, wrap(tx.Save(p), "store a proposal")
}

// ReviseEMRProposal replaces what an undecided proposal proposes.
func ReviseEMRProposal(tx core.App, p *EMRProposal, source, dated string, value phi.Text) error {
	p.Set("source", source)
	p.Set("dated", dated)
	p.Set("value", value.Reveal())
	return wrap(tx.Save(p), "revise a proposal")
}

// EMRProposalsOf returns the proposals of a patient from one record of the EMR, in order. Unreadable ones are left out.
func EMRProposalsOf(app core.App, patientID, emrID string) (readable []*EMRProposal, err error) {
	found, err := listOf[EMRProposal](app, EMRProposals, dbx.HashExp{"patient": patientID, "emr_id": emrID}, "id")
	for _, p := range found {
		if Readable(p.ProxyRecord()) == nil {
			readable = append(readable, p)
		}
	}
	return readable, err
}

// FindEMRProposal finds a proposal of a patient by its number.
func FindEMRProposal(app core.App, patientID string, number int64) (*EMRProposal, error) {
	return findReadable[EMRProposal](app, EMRProposals, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// DecideEMRProposal changes the state of a proposal from one to another, and reports whether it was in the first.
func DecideEMRProposal(tx core.App, id, from, to, by string, now time.Time) (bool, error) {
	n, err := updateCounted(tx, "decide a proposal", EMRProposals,
		dbx.Params{"status": to, "decided_by": by, "decided_at": FormatInstant(now)}, dbx.HashExp{"id": id, "status": from})
	return n == 1, err
}

func (p *EMRProposal) Number() int64        { return Number(p.Id) }
func (p *EMRProposal) PatientID() string    { return p.GetString(ColumnPatient) }
func (p *EMRProposal) EMRID() string        { return p.GetString("emr_id") }
func (p *EMRProposal) Kind() string         { return p.GetString("kind") }
func (p *EMRProposal) Status() string       { return p.GetString("status") }
func (p *EMRProposal) Value() phi.Text      { return phi.Text(p.GetString("value")) } // JSON
func (p *EMRProposal) Source() string       { return p.GetString("source") }
func (p *EMRProposal) Dated() string        { return p.GetString("dated") }
func (p *EMRProposal) DecidedAt() time.Time { return instantOf(p, "decided_at") }
func (p *EMRProposal) DecidedBy() string    { return p.GetString("decided_by") }
