package patients

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
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

// FoldedName is a patient's name without case and accents, as the [Directory] compares it. It must not be kept.
type FoldedName struct{ last, first []byte }

// FoldName folds another name.
func FoldName(last, first string) FoldedName {
	return FoldedName{[]byte(fold(last)), []byte(fold(first))}
}

// MatchMode is how a pattern matches a name.
type MatchMode uint8

// The modes: from the start of the name or of one of its words, anywhere, or the whole name.
const (
	MatchStart MatchMode = iota
	MatchAnywhere
	MatchWhole
)

// NamePattern is a text to match with names.
type NamePattern struct {
	text []byte
	mode MatchMode
}

// NewNamePattern folds a text.
func NewNamePattern(text string, how MatchMode) NamePattern {
	return NamePattern{bytes.Join(bytes.Fields([]byte(fold(text))), []byte(" ")), how}
}

// FamilyMatches reports whether the family name matches.
func (n FoldedName) FamilyMatches(s NamePattern) bool { return s.matches(n.last) }

// GivenMatches reports whether the given name matches.
func (n FoldedName) GivenMatches(s NamePattern) bool { return s.matches(n.first) }

// AnyMatches reports whether either name matches, or both in either order.
func (n FoldedName) AnyMatches(s NamePattern) bool {
	return s.matches(n.last) || s.matches(n.first) ||
		s.matches(slices.Concat(n.first, []byte(" "), n.last)) || s.matches(slices.Concat(n.last, []byte(" "), n.first))
}

func (p NamePattern) matches(name []byte) bool {
	switch {
	case len(p.text) == 0:
		return false
	case p.mode == MatchWhole:
		return bytes.Equal(name, p.text)
	case p.mode == MatchAnywhere:
		return bytes.Contains(name, p.text)
	}
	for at := 0; ; {
		hit := bytes.Index(name[at:], p.text)
		if hit < 0 {
			return false
		}
		if at += hit; at == 0 || name[at-1] == ' ' || name[at-1] == '-' {
			return true
		}
		at++
	}
}

// IDsByName returns the ids of patients with matching names, without deleted ones, in no order.
func (d *Directory) IDsByName(match func(FoldedName) bool) []string {
	found := []string{}
	check := func(id uuid.UUID, text []byte, state State) {
		last, rest, _ := bytes.Cut(text, []byte{separator})
		first, _, _ := bytes.Cut(rest, []byte{separator})
		if state != Deleted && match(FoldedName{last, first}) {
			found = append(found, id.String())
		}
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range d.base.ids {
		if !d.removed.has(i) {
			check(d.base.ids[i], d.base.entryText(i), d.base.state[i])
		}
	}
	for _, e := range d.changes {
		check(e.id, e.text, e.state)
	}
	return found
}
