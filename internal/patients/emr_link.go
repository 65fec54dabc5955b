package patients

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Warnings about a link to a record of the EMR.
const (
	DiffersInName      = "name_differs"
	DiffersInBirthDate = "date_of_birth_differs"
	DiffersInMRN       = "mrn_differs"
	RecordDeceased     = "deceased"
	RecordInactive     = "inactive"
)

// releaseQueuedDeliveries releases the readings that waited for the link to the EMR. before is the stored patient; nil for a new one.
func releaseQueuedDeliveries(tx core.App, p, before *collections.Patient, now time.Time) error {
	if p.ExternalID() == "" || before != nil && before.ExternalID() == p.ExternalID() {
		return nil
	}
	return emr.ReleaseLinked(tx, p.Id, now)
}

// Link links a patient to a record of the EMR. It reads the record first, outside of any transaction, and rejects an unknown or replaced
// one. A record with another name or date of birth is rejected unless the caller confirms the identity: readings in a stranger's chart are
// worse than undelivered ones. It returns the warnings. Source: docs/decisions/emr.md, "Linking".
func Link(ctx context.Context, app core.App, chart EMRReader, p *collections.Patient, emrID string, confirmed bool, by audit.Actor, now time.Time) (warnings []string, err error) {
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return nil, err
	}
	if known := p.ExternalID(); known != "" && known != emrID {
		return nil, fault.State("invalid_state", "The patient is linked to another record of the EMR.")
	}
	found, err := chart.ReadPatient(ctx, emrID)
	if refusal, ok := errors.AsType[*emr.Error](err); ok && refusal.Code == emr.CodePatientNotFound {
		return nil, fault.Field("emr_id", "The EMR has no patient with this id.")
	}
	if err != nil {
		return nil, err
	}
	if found.Replaced {
		return nil, fault.Field("emr_id", "The EMR has replaced this record by another one.")
	}
	warnings = linkWarnings(p, found)
	if !confirmed && (slices.Contains(warnings, DiffersInName) || slices.Contains(warnings, DiffersInBirthDate)) {
		refusal := fault.State("identity_differs", "The EMR's record has another name or date of birth.").With("warnings", warnings)
		return nil, cmp.Or(auditEMRRecordShown(app, emrID, p.Id, by, now), error(refusal))
	}
	holder, err := collections.FindPatientByExternalID(app, emrID)
	if err == nil && holder.Id != p.Id {
		return nil, fault.Field("emr_id", "The record belongs to patient "+holder.Id+".")
	}
	if err != nil && !collections.IsNotFound(err) {
		return nil, err
	}
	_, err = modify(app, p.Id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		if known := p.ExternalID(); known != "" && known != emrID { // another request was first
			return fault.State("invalid_state", "The patient is linked to another record of the EMR.")
		}
		p.Set(collections.PatientExternalID, emrID)
		return nil
	})
	return warnings, err
}

// auditEMRRecordShown audits, like a search, that a user was shown details of an EMR record that is not the patient's.
func auditEMRRecordShown(app core.App, emrID, patientID string, by audit.Actor, now time.Time) error {
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSearch, Actor: by, ResourceType: audit.ResourceEMRPatient, ResourceID: emrID, PatientID: patientID,
		Changes: audit.Changes{"emr_ids": {New: []string{emrID}}},
	}, now)
}

// linkWarnings compares a patient with a record of the EMR.
func linkWarnings(p *collections.Patient, found emr.Patient) (warnings []string) {
	ours := p.Demographics()
	for _, c := range []struct {
		warning string
		holds   bool
	}{
		{DiffersInName, !sameName(ours.FirstName+" "+ours.LastName, found.Who.FirstName+" "+found.Who.LastName)},
		{DiffersInBirthDate, ours.DateOfBirth != found.Who.DateOfBirth},
		{DiffersInMRN, found.MRN != "" && !strings.EqualFold(p.MRN(), found.MRN)},
		{RecordDeceased, found.Deceased},
		{RecordInactive, found.Retired},
	} {
		if c.holds {
			warnings = append(warnings, c.warning)
		}
	}
	return warnings
}

// sameName compares names without case, accents and white space.
func sameName(a, b string) bool {
	return slices.Equal(strings.Fields(fold(a)), strings.Fields(fold(b)))
}

// canLink reports whether a readable patient has no link yet.
func canLink(p *collections.Patient) bool {
	return p.ExternalID() == "" && !p.Deleted() && collections.Readable(p.ProxyRecord()) == nil
}

// linkExisting links the unlinked patient with the same MRN, name and date of birth as a record to be imported; rejecting the import alone
// would leave the readings undelivered. Source: docs/decisions/emr.md, "Linking".
func linkExisting(app core.App, holder *collections.Patient, found emr.Patient, by audit.Actor, now time.Time) (linked bool, err error) {
	if !canLink(holder) || len(linkWarnings(holder, found)) > 0 {
		return false, nil
	}
	_, err = modify(app, holder.Id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		if linked = p.ExternalID() == ""; linked {
			p.Set(collections.PatientExternalID, found.ID)
		}
		return nil
	})
	return linked && err == nil, err
}
