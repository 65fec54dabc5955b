package emrcontext

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// The kinds of proposals.
const (
	Diagnosis        = "diagnosis"
	MonitoringOrder  = "order"
	Insurance        = "insurance"
	EstablishedVisit = "established_visit"
	Hold             = "hold"
	Deceased         = "deceased"
)

const (
	// maxDiagnoses bounds the open proposals of diagnoses, so that a person can decide them.
	maxDiagnoses = 12
	// oldStay is how old a stay in progress may be to be proposed: some EMRs never close an encounter.
	oldStay = 90 * 24 * time.Hour
)

// Value is what is proposed; each kind has its own members.
type Value struct {
	concealed
	Code string `json:"code,omitzero"` // of a diagnosis, ICD-10-CM
	Text string `json:"text,omitzero"` // of a diagnosis, order or visit

	Dated     string `json:"dated,omitzero"` // of an order or visit, YYYY-MM-DD
	Requester string `json:"requester,omitzero"`

	PayerID      int64  `json:"payer_id,omitzero"` // the practice's payer; 0 if none of its payers has this name or id
	Payer        string `json:"payer,omitzero"`
	MemberID     string `json:"member_id,omitzero"`
	GroupNumber  string `json:"group_number,omitzero"`
	Relationship string `json:"relationship,omitzero"`

	Reason string `json:"reason,omitzero"` // of a hold
	Class  string `json:"class,omitzero"`  // of the encounter
	Since  string `json:"since,omitzero"`  // when it began, as the EMR has it

	DeceasedAt string `json:"deceased_at,omitzero"` // YYYY-MM-DD; missing when the EMR does not have it
}

// proposal is a value of the chart that the patient's record lacks.
type proposal struct {
	kind, source, dated string
	value               Value
}

// key identifies what is proposed: a proposal that was decided is not made again for the same key.
func (p proposal) key() string {
	switch p.kind {
	case Diagnosis:
		return p.kind + "|" + p.value.Code
	case Insurance:
		return strings.Join([]string{p.kind, p.source, p.value.Payer, p.value.MemberID}, "|")
	case Deceased:
		return p.kind + "|" + p.value.DeceasedAt
	}
	return p.kind + "|" + p.source
}

func stored(p *collections.EMRProposal) (read proposal, ok bool) {
	read = proposal{kind: p.Kind(), source: p.Source(), dated: p.Dated()}
	return read, json.Unmarshal([]byte(p.Value().Reveal()), &read.value) == nil
}

// facts are what the patient's record has, which no proposal replaces.
type facts struct {
	isActive  bool
	codes     []string
	listed    map[string]bool // diagnosis codes of the chart that the practice's list has
	hasOrder  bool
	hasVisit  bool
	monitored string // the first day of monitoring; "" if it has not begun
	coverage  phi.Coverage
	hold      collections.PatientHold
	payers    []collections.Payer
	zone      *time.Location // the patient's
}

func gatherFacts(app core.App, patient *collections.Patient, c Content, practice *time.Location) (f facts, err error) {
	f = facts{
		isActive: patient.Active() && !patient.Deleted(), codes: patient.ICD10Codes(), hold: patient.Hold(), zone: collections.Zone(patient.TimeZone(), practice),
	}
	if f.coverage, err = patient.Coverage(); err != nil {
		return f, fmt.Errorf("read the insurance: %w", err)
	}
	orders, err := collections.FirstOrders(app, []string{patient.Id})
	if err != nil {
		return f, err
	}
	for _, o := range orders {
		f.hasOrder = f.hasOrder || o.Kind == collections.OrderOfMonitoring
		f.hasVisit = f.hasVisit || o.Kind == collections.EstablishedVisit
	}
	began, err := collections.FirstMonitored(app, patient.Id)
	if err != nil {
		return f, err
	}
	if !began.IsZero() {
		f.monitored = began.In(f.zone).Format(time.DateOnly)
	}
	var named []string
	for _, condition := range c.Conditions {
		if condition.ICD10 != "" {
			named = append(named, condition.ICD10)
		}
	}
	if f.listed, err = collections.ExistingICD10(app, named); err != nil {
		return f, err
	}
	f.payers, err = collections.ListPayers(app)
	return f, err
}

// needs reports whether the record still lacks what is proposed.
func (f facts) needs(p proposal, now time.Time) bool {
	if !f.isActive {
		return false
	}
	switch p.kind {
	case Diagnosis:
		return !slices.Contains(f.codes, p.value.Code)
	case MonitoringOrder:
		return !f.hasOrder
	case EstablishedVisit:
		return !f.hasVisit
	case Insurance:
		has := f.coverage
		if has.Payer == 0 { // a member id of another insurance is no reason to name this one's payer
			return !has.SelfPay && (has.MemberID == "" || has.MemberID == p.value.MemberID)
		}
		return !has.SelfPay && has.Payer == p.value.PayerID && has.MemberID == "" && p.value.MemberID != ""
	case Hold:
		return !f.hold.InForce(now)
	}
	return true
}

// propose returns what the chart has and the record lacks. Decided diagnoses leave their place to others.
func propose(c Content, f facts, known map[string]*collections.EMRProposal, now time.Time) (list []proposal) {
	today := now.In(f.zone).Format(time.DateOnly)
	add := func(p proposal, found bool) {
		if found && f.needs(p, now) {
			list = append(list, p)
		}
	}
	for _, p := range proposeDiagnoses(c.Conditions, f) {
		before := known[p.key()]
		isDecided := before != nil && (before.Status() == collections.ProposalAccepted || before.Status() == collections.ProposalDismissed)
		add(p, !isDecided && len(list) < maxDiagnoses)
	}
	p, found := proposeOrder(c.Orders, today)
	add(p, found)
	p, found = proposeInsurance(c.Coverage, f.payers, today)
	add(p, found)
	p, found = proposeVisit(c.Encounters, f.monitored, today)
	add(p, found)
	if stay, found := currentStay(c.Encounters, now); found {
		add(proposal{Hold, stay.Source, day(stay.Start), Value{Reason: "hospital", Class: stay.Class, Since: stay.Start, Text: stay.Text}}, true)
	}
	if c.Deceased != nil && c.Deceased.Date <= today {
		add(proposal{kind: Deceased, source: "Patient", dated: c.Deceased.Date, value: Value{DeceasedAt: c.Deceased.Date}}, true)
	}
	return list
}

// proposeDiagnoses proposes the active, confirmed conditions with a code of the practice's list, in the order of the chart.
func proposeDiagnoses(conditions []Condition, f facts) (list []proposal) {
	seen := map[string]bool{}
	for _, v := range conditions {
		isCurrent := rankOf(v.Status, "active", "recurrence", "relapse") == 0 && rankOf(v.Confidence, "confirmed") == 0
		if !isCurrent || v.Category == "health-concern" || !validate.ValidICD10(v.ICD10) || !f.listed[v.ICD10] || seen[v.ICD10] {
			continue
		}
		seen[v.ICD10] = true
		list = append(list, proposal{Diagnosis, v.Source, cmp.Or(v.Date, day(v.Onset)), Value{Code: v.ICD10, Text: v.Text}})
	}
	return list
}

// monitoringCodes are the codes of remote physiologic monitoring. Source: CPT, Remote Physiologic Monitoring and Treatment Management Services.
var monitoringCodes = []string{"99091", "99445", "99453", "99454", "99457", "99458", "99470"}

// isMonitoring reports whether an order is one of remote monitoring: by its code, else by its words.
func (o Order) isMonitoring() bool {
	if o.Code != nil && slices.Contains(monitoringCodes, o.Code.Code) {
		return true
	}
	words := strings.FieldsFunc(strings.ToLower(o.Text), func(r rune) bool { return r < 'a' || r > 'z' })
	has := func(word string) bool { return slices.Contains(words, word) }
	return has("rpm") || has("telemonitoring") || has("remote") && (has("monitoring") || has("monitor"))
}

// proposeOrder proposes the first active or completed order of remote monitoring; orders are sorted, active and newest first.
func proposeOrder(orders []Order, today string) (p proposal, found bool) {
	for _, o := range orders {
		if o.isMonitoring() && o.Date != "" && o.Date <= today && slices.Contains([]string{"", "active", "on-hold", "completed"}, o.Status) {
			return proposal{MonitoringOrder, o.Source, o.Date, Value{Text: o.Text, Dated: o.Date, Requester: requesterOf(o)}}, true
		}
	}
	return p, false
}

func requesterOf(o Order) string {
	if o.RequesterNPI == "" {
		return o.Requester
	}
	return strings.TrimSpace(o.Requester + " (NPI " + o.RequesterNPI + ")")
}

// proposeInsurance proposes the active coverage that pays first.
func proposeInsurance(coverage []Coverage, payers []collections.Payer, today string) (p proposal, found bool) {
	var first *Coverage
	for i, c := range coverage {
		isCurrent := rankOf(c.Status, "active") == 0 && c.Start <= today && (c.End == "" || c.End >= today)
		if !isCurrent || c.Payer == "" && c.PayerCode == "" {
			continue
		}
		if first == nil || c.Order != 0 && (first.Order == 0 || c.Order < first.Order) {
			first = &coverage[i]
		}
	}
	if first == nil {
		return p, false
	}
	return proposal{Insurance, first.Source, first.Start, Value{
		PayerID: matchPayer(*first, payers), Payer: cmp.Or(first.Payer, first.PayerCode), MemberID: first.MemberID, GroupNumber: first.GroupNumber,
		Relationship: first.Relationship,
	}}, true
}

// matchPayer returns the practice's active payer with the identifier or, if only one has it, the name; 0 for none.
func matchPayer(c Coverage, payers []collections.Payer) (number int64) {
	fold := func(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }
	for _, payer := range payers {
		if payer.Active && c.PayerCode != "" && (payer.EDI == c.PayerCode || payer.Code == c.PayerCode) {
			return payer.Number()
		}
	}
	for _, payer := range payers {
		if payer.Active && c.Payer != "" && fold(payer.Name) == fold(c.Payer) {
			if number != 0 {
				return 0
			}
			number = payer.Number()
		}
	}
	return number
}

// proposeVisit proposes the latest finished visit that is not after the beginning of monitoring: a later one does not prove an established
// patient. Source: docs/decisions/claims.md, "Self-audit".
func proposeVisit(encounters []Encounter, monitored, today string) (p proposal, found bool) {
	latest := cmp.Or(monitored, today)
	for _, e := range encounters {
		at := day(e.Start)
		if e.Status == "finished" && (e.Class == "AMB" || e.Class == "VR") && at != "" && at <= latest && at > p.dated {
			p, found = proposal{EstablishedVisit, e.Source, at, Value{Dated: at, Text: e.Text}}, true
		}
	}
	return p, found
}

// isInpatient reports whether a class is a stay in hospital. Source: HL7 v3 ActEncounterCode.
func isInpatient(class string) bool { return class == "IMP" || class == "ACUTE" }

// currentStay returns the encounter in a hospital that is in progress, an inpatient one first. One that began long ago, or in the future, or has
// an end in the past, is not in progress, in any status.
func currentStay(encounters []Encounter, now time.Time) (stay Encounter, found bool) {
	for _, e := range encounters {
		began, known := instant(e.Start)
		ended, over := instant(e.End)
		switch {
		case e.Status != "in-progress" && e.Status != "onleave":
		case !isInpatient(e.Class) && e.Class != "EMER" && e.Class != "OBSENC":
		case known && (began.After(now) || now.Sub(began) > oldStay), over && !ended.After(now):
		case !found || isInpatient(e.Class) && !isInpatient(stay.Class):
			stay, found = e, true
		}
	}
	return stay, found
}

// instant reads a FHIR date-time; a date is its start in UTC.
func instant(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
