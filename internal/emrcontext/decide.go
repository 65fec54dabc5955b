package emrcontext

import (
	"cmp"
	"encoding/json"
	"encoding/json/jsontext"
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	// autoHoldDays is how far ahead a hold of a stay ends, unless the stay is found again: an EMR that is away must not silence missed
	// readings for long.
	autoHoldDays = 3
	// acceptedHoldDays is the length of a hold that a person accepts without naming its end.
	acceptedHoldDays = 7
	// newStay is how old a stay may be to set a hold without a person.
	newStay = 30 * 24 * time.Hour
)

// update updates the proposals and the hospital hold from a chart, in the transaction that stores
// it.
func (e *Engine) update(tx core.App, patient *collections.Patient, c Content, now time.Time) error {
	f, err := gatherFacts(tx, patient, c, e.Zone)
	if err != nil {
		return err
	}
	known, err := knownProposals(tx, patient)
	if err != nil {
		return err
	}
	if err := e.updateStayHold(tx, patient, c, f, known, now); err != nil {
		return err
	}
	if known, err = knownProposals(tx, patient); err != nil {
		return err
	}
	if patient, err = collections.FindPatient(tx, patient.Id); err != nil {
		return err
	}
	f.hold = patient.Hold()
	wanted := map[string]bool{}
	for _, p := range propose(c, f, known, now) {
		wanted[p.key()] = true
		if err := e.offer(tx, patient, p, known[p.key()], f, now); err != nil {
			return err
		}
	}
	for key, m := range known {
		if m.Status() == collections.ProposalOpen && !wanted[key] {
			if _, err := collections.DecideEMRProposal(tx, m.Id, collections.ProposalOpen, collections.ProposalWithdrawn, string(audit.BySystem), now); err != nil {
				return err
			}
		}
	}
	return nil
}

// knownProposals returns the proposals of a patient's record of the EMR by key.
func knownProposals(tx core.App, patient *collections.Patient) (map[string]*collections.EMRProposal, error) {
	made, err := collections.EMRProposalsOf(tx, patient.Id, patient.ExternalID())
	known := map[string]*collections.EMRProposal{}
	for _, m := range made {
		if p, ok := stored(m); ok {
			known[p.key()] = m
		}
	}
	return known, err
}

// offer creates a proposal, or reopens one that was withdrawn, or a hold that ended during the
// stay. An open proposal gets the chart's current value.
func (e *Engine) offer(tx core.App, patient *collections.Patient, p proposal, before *collections.EMRProposal, f facts, now time.Time) error {
	if before == nil {
		_, err := e.add(tx, patient, p, now)
		return err
	}
	ranOut := p.kind == Hold && before.Status() == collections.ProposalAccepted && !f.hold.From.Before(before.DecidedAt()) && !f.hold.End().Before(f.hold.Until)
	isOpen := before.Status() == collections.ProposalOpen
	if !isOpen && before.Status() != collections.ProposalWithdrawn && !ranOut {
		return nil
	}
	if earlier, ok := stored(before); ok && earlier != p {
		value, err := json.Marshal(p.value)
		if err != nil {
			return err
		}
		if err := collections.ReviseEMRProposal(tx, before, p.source, p.dated, phi.Text(value)); err != nil {
			return err
		}
	}
	if isOpen {
		return nil
	}
	_, err := collections.DecideEMRProposal(tx, before.Id, before.Status(), collections.ProposalOpen, "", now)
	return err
}

func (e *Engine) add(tx core.App, patient *collections.Patient, p proposal, now time.Time) (*collections.EMRProposal, error) {
	value, err := json.Marshal(p.value)
	if err != nil {
		return nil, err
	}
	return collections.AddEMRProposal(tx, collections.EMRProposalDraft{
		PatientID: patient.Id, EMRID: patient.ExternalID(), Kind: p.kind, Source: p.source, Dated: p.dated, Value: phi.Text(value),
	}, now)
}

// updateStayHold sets, extends and ends the hold of a stay in hospital, where the practice has chosen so. A hold that a person set or changed stays,
// and none is set again for a stay after a person ended or dismissed its hold. Source: docs/decisions/emr.md, "Hold by inpatient stay".
func (e *Engine) updateStayHold(tx core.App, patient *collections.Patient, c Content, f facts, known map[string]*collections.EMRProposal, now time.Time) error {
	stay, found := currentStay(c.Encounters, now)
	isStay := found && isInpatient(stay.Class)
	isOurs := f.hold.InForce(now) && f.hold.By == string(audit.BySystem)
	if isOurs && !isStay {
		if !c.isAnswered("Encounter") {
			return nil // unknown: the hold runs out
		}
		return endStay(tx, patient, f.hold, known, now)
	}
	if !e.AutoHold || !f.isActive || !isStay || f.hold.InForce(now) && !isOurs || slices.Contains(c.Unavailable, Unavailable{"Encounter", Failed}) {
		return nil
	}
	p := proposal{Hold, stay.Source, day(stay.Start), Value{Reason: "hospital", Class: stay.Class, Since: stay.Start, Text: stay.Text}}
	before := known[p.key()]
	began, isDated := instant(stay.Start)
	switch {
	case isOurs: // extended below
	case !isDated || now.Sub(began) > newStay:
		return nil // a person decides
	case before != nil && before.Status() == collections.ProposalDismissed:
		return nil
	case before != nil && before.Status() == collections.ProposalAccepted && f.hold.End().Before(f.hold.Until):
		return nil // a person ended it
	}
	until := now.In(f.zone).AddDate(0, 0, autoHoldDays).Format(time.DateOnly)
	if isOurs && f.hold.Until.Add(-time.Microsecond).In(f.zone).Format(time.DateOnly) == until {
		return nil
	}
	if err := setHold(tx, patient, until, f.zone, audit.System(), now); err != nil {
		return err
	}
	if before == nil {
		var err error
		if before, err = e.add(tx, patient, p, now); err != nil {
			return err
		}
	}
	if before.Status() == collections.ProposalAccepted {
		return nil
	}
	_, err := collections.DecideEMRProposal(tx, before.Id, before.Status(), collections.ProposalAccepted, string(audit.BySystem), now)
	return err
}

// endStay ends the service's hold and withdraws its proposal, so that a resumed stay is not treated
// like one with a hold that a person ended.
func endStay(tx core.App, patient *collections.Patient, hold collections.PatientHold, known map[string]*collections.EMRProposal, now time.Time) error {
	for _, m := range known {
		if m.Kind() != Hold || m.Status() != collections.ProposalAccepted || m.DecidedBy() != string(audit.BySystem) || m.DecidedAt().Before(hold.From) {
			continue
		}
		if _, err := collections.DecideEMRProposal(tx, m.Id, collections.ProposalAccepted, collections.ProposalWithdrawn, string(audit.BySystem), now); err != nil {
			return err
		}
	}
	_, err := patients.EndHold(tx, patient.Id, audit.System(), now)
	return err
}

func setHold(tx core.App, patient *collections.Patient, until string, zone *time.Location, by audit.Actor, now time.Time) error {
	checks := validate.NewChecks()
	draft := patients.HoldBody{Reason: validate.Of("hospital"), Until: validate.Of(until)}.Read(checks, now, zone)
	if err := checks.Err(); err != nil {
		return err
	}
	_, err := patients.SetHold(tx, patient.Id, draft, by, now)
	return err
}

// Decision is what a person adds to a proposal that is accepted.
type Decision struct {
	PayerID  int64  // of an insurance that names none of the practice's payers; 0 for the proposed one
	AuthorID int64  // of an order or visit; 0 for the caller, or the patient's primary provider
	Until    string // of a hold, a date or date-time; "" for a week
	Confirm  bool   // archive a deceased patient although a stat escalation is open
}

// Caller is the person who decides.
type Caller struct {
	Actor    audit.Actor
	Role     authz.Role
	RecordID string
}

// actions are what a caller must be permitted to do with a kind of proposal: the same as without the proposal.
var actions = map[string]authz.Action{
	Diagnosis: authz.UpdatePatients, Insurance: authz.UpdatePatients, MonitoringOrder: authz.RecordOrders, EstablishedVisit: authz.RecordOrders,
	Hold: authz.HoldPatients, Deceased: authz.ArchivePatients,
}

// Accept takes a proposal into the patient's record by the function that the forms of staff use, and marks it, in one transaction. It is an
// invalid_state fault if it was decided, or if the record already has a value.
func (e *Engine) Accept(app core.App, patientID string, number int64, d Decision, by Caller, now time.Time) error {
	return e.decide(app, patientID, number, collections.ProposalAccepted, audit.EMRProposalAccept, by, now, func(tx core.App, patient *collections.Patient, p proposal) error {
		f, err := gatherFacts(tx, patient, Content{}, e.Zone)
		if err != nil {
			return err
		}
		if !f.needs(p, now) {
			return fault.State("invalid_state", "The patient's record already has this or another value. Nothing was replaced.")
		}
		return e.apply(tx, patient, p, d, by, f, now)
	})
}

// Dismiss marks a proposal, which is not made again.
func (e *Engine) Dismiss(app core.App, patientID string, number int64, by Caller, now time.Time) error {
	return e.decide(app, patientID, number, collections.ProposalDismissed, audit.EMRProposalDismiss, by, now,
		func(core.App, *collections.Patient, proposal) error { return nil })
}

func (e *Engine) decide(app core.App, patientID string, number int64, to string, event audit.Event, by Caller, now time.Time,
	apply func(core.App, *collections.Patient, proposal) error,
) error {
	return app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		found, err := collections.FindEMRProposal(tx, patientID, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		p, ok := stored(found)
		if !ok || found.EMRID() != patient.ExternalID() {
			return fault.Missing()
		}
		if authz.ReachOf(by.Role, actions[p.kind]) == authz.None {
			return fault.New(fault.Forbidden, "permission_denied", "Your role may not decide this proposal.")
		}
		if found.Status() != collections.ProposalOpen {
			return fault.State("invalid_state", "The proposal is "+found.Status()+".")
		}
		if err := apply(tx, patient, p); err != nil {
			return err
		}
		if _, err := collections.DecideEMRProposal(tx, found.Id, collections.ProposalOpen, to, by.Actor.Email, now); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: event, Actor: by.Actor, ResourceType: audit.ResourceEMRProposal, ResourceID: strconv.FormatInt(number, 10), PatientID: patientID,
			Changes: audit.Changes{"kind": {New: p.kind}, "source": {New: p.source}},
		}, now)
	})
}

// apply stores the proposed value as if the caller had entered it.
func (e *Engine) apply(tx core.App, patient *collections.Patient, p proposal, d Decision, by Caller, f facts, now time.Time) error {
	switch p.kind {
	case Diagnosis:
		return e.patch(tx, patient, "icd10_codes", append(slices.Clone(f.codes), p.value.Code), by, now)
	case Insurance:
		return e.applyInsurance(tx, patient, p, d, by, f, now)
	case MonitoringOrder, EstablishedVisit:
		return e.recordOrder(tx, patient, p, d, by, now)
	case Hold:
		until := cmp.Or(d.Until, now.In(f.zone).AddDate(0, 0, acceptedHoldDays).Format(time.DateOnly))
		return setHold(tx, patient, until, f.zone, by.Actor, now)
	case Deceased:
		return e.archive(tx, patient, p, d, by, f, now)
	}
	return fault.Missing()
}

// applyInsurance stores the members of a proposed insurance that the record lacks.
func (e *Engine) applyInsurance(tx core.App, patient *collections.Patient, p proposal, d Decision, by Caller, f facts, now time.Time) error {
	has := f.coverage
	payer := cmp.Or(d.PayerID, has.Payer, p.value.PayerID)
	switch {
	case payer == 0:
		return fault.Field("payer_id", "No payer of the practice has this name or identifier. Name one of the practice's payers.")
	case has.Payer != 0 && payer != has.Payer:
		return fault.Field("payer_id", "The patient has another payer, which is not replaced.")
	}
	members := map[string]any{"payer_id": payer}
	for name, values := range map[string][2]string{
		"member_id": {has.MemberID, p.value.MemberID}, "group_number": {has.GroupNumber, p.value.GroupNumber}, "relationship": {has.Relationship, p.value.Relationship},
	} {
		if values[0] == "" && values[1] != "" {
			members[name] = values[1]
		}
	}
	return e.patch(tx, patient, "insurance", members, by, now)
}

func (e *Engine) patch(tx core.App, patient *collections.Patient, member string, value any, by Caller, now time.Time) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = patients.ApplyPatch(tx, patient.Id, patients.Patch{member: jsontext.Value(raw)}, by.Actor, now, e.Zone)
	return err
}

func (e *Engine) recordOrder(tx core.App, patient *collections.Patient, p proposal, d Decision, by Caller, now time.Time) error {
	text := p.value.Text
	if p.value.Requester != "" {
		text += " Ordered by " + p.value.Requester + "."
	}
	body := patients.OrderBody{
		Kind: validate.Of(collections.EstablishedVisit), Dated: validate.Of(p.value.Dated), Text: validate.Of(text + " From the EMR: " + p.source + "."),
	}
	if p.kind == MonitoringOrder {
		body.Kind = validate.Of(collections.OrderOfMonitoring)
	}
	switch {
	case d.AuthorID != 0:
		body.AuthorID = validate.Of(d.AuthorID)
	case !patients.CanOrder(by.Role) && patient.PrimaryProviderID() != 0:
		body.AuthorID = validate.Of(patient.PrimaryProviderID())
	}
	checks := validate.NewChecks()
	draft := body.Read(checks, now, e.Zone)
	if err := checks.Err(); err != nil {
		return err
	}
	_, err := patients.RecordOrder(tx, patient.Id, draft, by.Actor, by.RecordID, now)
	return err
}

func (e *Engine) archive(tx core.App, patient *collections.Patient, p proposal, d Decision, by Caller, f facts, now time.Time) error {
	began, err := patients.MonitoringBegan(tx, patient)
	if err != nil {
		return err
	}
	body := patients.ArchiveBody{Reason: validate.Of("Deceased, by the EMR's record."), Confirm: validate.Of(d.Confirm)}
	if p.value.DeceasedAt != "" {
		body.DeceasedAt = validate.Of(p.value.DeceasedAt)
	}
	checks := validate.NewChecks()
	draft := body.Read(checks, now, f.zone, patient.Demographics().DateOfBirth, began)
	if err := checks.Err(); err != nil {
		return err
	}
	_, err = patients.Archive(tx, patient.Id, draft, by.Actor, now)
	return err
}
