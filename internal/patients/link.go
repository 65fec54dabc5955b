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

// What speaks against a link to a record of the EMR, or is to be known of it.
const (
	DiffersInName      = "name_differs"
	DiffersInBirthDate = "date_of_birth_differs"
	DiffersInMRN       = "mrn_differs"
	RecordDeceased     = "deceased"
	RecordInactive     = "inactive"
)

// sendWhatWaited has the readings sent that waited until the EMR knew the patient. before is what was stored; nil for a new patient.
func sendWhatWaited(tx core.App, p, before *collections.Patient, now time.Time) error {
	if p.ExternalID() == "" || before != nil && before.ExternalID() == p.ExternalID() {
		return nil
	}
	return emr.Linked(tx, p.Id, now)
}

// Link ties a patient to the record that the EMR has of them. The EMR is asked for the record first, outside of any transaction: what it does not
// know, or has replaced by another, is refused. So is a record of another name or another date of birth unless a person has confirmed that it is the
// same one's: readings in a stranger's chart are worse than readings that wait. What is to be known of the record comes back.
// Source: docs/decisions/emr.md, "Linking".
func Link(ctx context.Context, app core.App, chart Chart, p *collections.Patient, emrID string, confirmed bool, by audit.Actor, now time.Time) (warnings []string, err error) {
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return nil, err
	}
	if known := p.ExternalID(); known != "" && known != emrID {
		return nil, fault.State("invalid_state", "The patient is linked to another record of the EMR.")
	}
	found, err := chart.ReadPatient(ctx, emrID)
	if refusal, ok := errors.AsType[*emr.Error](err); ok && refusal.Code == emr.CodePatientNotFound {
		return nil, fault.Field("emr_id", "The EMR knows nobody of this id.")
	}
	if err != nil {
		return nil, err
	}
	if found.Replaced {
		return nil, fault.Field("emr_id", "The EMR has replaced this record by another one.")
	}
	warnings = about(p, found)
	if !confirmed && (slices.Contains(warnings, DiffersInName) || slices.Contains(warnings, DiffersInBirthDate)) {
		refusal := fault.State("identity_differs", "The EMR's record has another name or date of birth.").With("warnings", warnings)
		return nil, cmp.Or(noteShown(app, emrID, p.Id, by, now), error(refusal))
	}
	holder, err := collections.FindPatientByExternalID(app, emrID)
	if err == nil && holder.Id != p.Id {
		return nil, fault.Field("emr_id", "The record belongs to patient "+holder.Id+".")
	}
	if err != nil && !collections.Missing(err) {
		return nil, err
	}
	_, err = alter(app, p.Id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		if known := p.ExternalID(); known != "" && known != emrID { // somebody was faster
			return fault.State("invalid_state", "The patient is linked to another record of the EMR.")
		}
		p.Set(collections.PatientExternalID, emrID)
		return nil
	})
	return warnings, err
}

// noteShown notes that somebody was told something of a person at the EMR who is not, or not yet, a patient of ours, as a search does.
func noteShown(app core.App, emrID, patientID string, by audit.Actor, now time.Time) error {
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSearch, Actor: by, ResourceType: audit.ResourceEMRPatient, ResourceID: emrID, PatientID: patientID,
		Changes: audit.Changes{"emr_ids": {New: []string{emrID}}},
	}, now)
}

// about says what is to be known of the EMR's record of a patient.
func about(p *collections.Patient, found emr.Patient) (warnings []string) {
	ours := p.Demographics()
	for _, c := range []struct {
		warning string
		holds   bool
	}{
		{DiffersInName, !sameWords(ours.FirstName+" "+ours.LastName, found.Who.FirstName+" "+found.Who.LastName)},
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

// sameWords compares names without regard to case, accents and white space.
func sameWords(a, b string) bool {
	return slices.Equal(strings.Fields(fold(a)), strings.Fields(fold(b)))
}

// linkable reports whether nobody has said yet who a patient of ours is at the EMR, and it can be told who the patient is here.
func linkable(p *collections.Patient) bool {
	return p.ExternalID() == "" && !p.Deleted() && collections.Readable(p.ProxyRecord()) == nil
}

// linkInstead links the patient of ours who has the MRN of a record that is to be brought over, where the EMR did not know that patient and name and
// date of birth are the same: to leave it at the number would leave the readings waiting. Source: docs/decisions/emr.md, "Linking".
func linkInstead(app core.App, holder *collections.Patient, found emr.Patient, by audit.Actor, now time.Time) (linked bool, err error) {
	if !linkable(holder) || len(about(holder, found)) > 0 {
		return false, nil
	}
	_, err = alter(app, holder.Id, audit.PatientUpdate, by, now, func(p *collections.Patient) error {
		if linked = p.ExternalID() == ""; linked {
			p.Set(collections.PatientExternalID, found.ID)
		}
		return nil
	})
	return linked && err == nil, err
}
