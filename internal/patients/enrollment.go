package patients

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/templates"
)

// The steps of an enrollment.
const (
	StepPerson     = "person"
	StepConsent    = "consent"
	StepPayer      = "payer"
	StepOrder      = "order" // and the responsible provider
	StepDiagnoses  = "diagnoses"
	StepSchedule   = "schedule"
	StepTeam       = "team"
	StepDevice     = "device"
	StepReading    = "reading"
	StepThresholds = "thresholds"
)

// EnrollmentSteps lists the steps in their usual order; any order is possible.
var EnrollmentSteps = []string{StepPerson, StepConsent, StepPayer, StepOrder, StepDiagnoses, StepSchedule, StepTeam, StepDevice, StepReading, StepThresholds}

// The states of a step and of an enrollment.
const (
	EnrollmentDone    = "done"
	EnrollmentMissing = "missing"
	EnrollmentWaiting = "waiting" // for the device: no action is needed
)

// EnrollmentStates lists all states.
var EnrollmentStates = []string{EnrollmentMissing, EnrollmentWaiting, EnrollmentDone}

// The consequences of a missing item.
const (
	StopsBilling    = "billing"    // entries are not created or not approved
	StopsClaims     = "claims"     // the payer rejects the claim, or none is created
	StopsMonitoring = "monitoring" // nothing is measured
	StopsAlerts     = "alerts"     // alerts have no recipient, or use bounds that are not the patient's
	StopsDelivery   = "delivery"   // readings are not delivered to the EMR
)

// AllStops lists all consequences, those that harm the patient first.
var AllStops = []string{StopsMonitoring, StopsAlerts, StopsBilling, StopsClaims, StopsDelivery}

// EnrollmentItem is one missing item or hint: its code, the field to correct and its effect.
type EnrollmentItem struct {
	Code   string  `json:"code"`
	Field  *string `json:"field"` // of the patient or a related record; null for none
	Detail string  `json:"detail"`
	Effect string  `json:"effect"`
	Stops  *string `json:"stops"`
}

// EnrollmentStep is one step with its missing items.
type EnrollmentStep struct {
	Step    string           `json:"step"`
	State   string           `json:"state"`
	Missing []EnrollmentItem `json:"missing"`
	Hints   []EnrollmentItem `json:"hints"` // do not block the step
}

// Enrollment is the state of a patient's enrollment.
type Enrollment struct {
	State   string           `json:"state"`
	Done    int              `json:"done"` // steps
	Total   int              `json:"of"`
	Missing int              `json:"missing"` // items
	Stops   []string         `json:"stops"`
	Steps   []EnrollmentStep `json:"steps"`
}

// EnrollmentFacts is the input of [DecideEnrollment].
type EnrollmentFacts struct {
	Ready           billing.Readiness
	Claim           claims.FirstClaimCheck
	RequireOrder    bool // the practice bills only ordered monitoring
	Delivers        bool // the practice delivers readings to an EMR
	Linked          bool // the patient is linked to an EMR record
	Team            int  // care-team members, including the primary provider
	Needs           templates.Needs
	HasVisit        bool // an established-patient visit is recorded
	ExpectsReadings bool // the schedule, or the default without one, expects readings
}

// DecideEnrollment returns what is missing in an enrollment, by step. It has no rules of its own: preflight defines what a payer rejects,
// billing what blocks billing, and triage who needs thresholds. Source: docs/decisions/patients.md, "Enrollment".
func DecideEnrollment(f EnrollmentFacts) Enrollment {
	d := &decision{steps: map[string]*EnrollmentStep{}}
	for _, name := range EnrollmentSteps {
		d.steps[name] = &EnrollmentStep{Step: name, State: EnrollmentDone, Missing: []EnrollmentItem{}, Hints: []EnrollmentItem{}}
	}
	d.billing(f)
	d.claim(f)
	d.monitoring(f)
	return d.result()
}

type decision struct{ steps map[string]*EnrollmentStep }

func (d *decision) addMissing(step string, i EnrollmentItem) {
	s := d.steps[step]
	if !slices.ContainsFunc(s.Missing, func(other EnrollmentItem) bool { return other.Code == i.Code && equalFields(other.Field, i.Field) }) {
		s.Missing, s.State = append(s.Missing, i), EnrollmentMissing
	}
}

func (d *decision) addHint(step string, i EnrollmentItem) {
	d.steps[step].Hints = append(d.steps[step].Hints, i)
}

func equalFields(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func newItem(code, field, detail, effect, stops string) EnrollmentItem {
	i := EnrollmentItem{Code: code, Detail: detail, Effect: effect}
	if field != "" {
		i.Field = &field
	}
	if stops != "" {
		i.Stops = &stops
	}
	return i
}

// billing adds what blocks billing. Source: docs/decisions/billing.md, "Eligibility".
func (d *decision) billing(f EnrollmentFacts) {
	for _, what := range f.Ready.Missing {
		switch what {
		case billing.MissingConsent:
			d.addMissing(StepConsent, newItem(what, "", "No consent to monitoring is in force.", "Nothing of this month can be billed.", StopsBilling))
		case billing.MissingDiagnosis:
			d.addMissing(StepDiagnoses, newItem(what, "icd10_codes", "No diagnosis is on record.", "Nothing can be billed.", StopsBilling))
		}
	}
	switch {
	case !f.Ready.HasDevice:
		d.addMissing(StepDevice, newItem("no_device", "", "No device is assigned.", "No reading arrives automatically, and no day counts toward the 16.", StopsMonitoring))
	case !f.Ready.HasSetup:
		d.addMissing(StepDevice, newItem(billing.MissingSetup, "", "The set-up and teaching of the device is not recorded.", "99453 cannot be billed.", StopsBilling))
	}
	if f.Ready.FirstDataDay == "" {
		d.steps[StepReading].State = EnrollmentWaiting
	}
}

// claim adds the preflight findings of the first claim. A finding that must be corrected elsewhere,
// such as in the record of the payer or of a staff member, does not block the patient. Source:
// docs/decisions/claims.md, "Preflight".
func (d *decision) claim(f EnrollmentFacts) {
	for _, finding := range f.Claim.Errors {
		step, elsewhere := stepOf(finding.Field)
		if step == "" {
			continue // a setting of the practice
		}
		i := newItem(finding.Code, finding.Field, finding.Message, "The payer would reject the claim.", StopsClaims)
		if elsewhere {
			d.addHint(step, i)
		} else {
			d.addMissing(step, i)
		}
	}
	for _, finding := range f.Claim.Warnings {
		switch finding.Code {
		case claims.MissingOrder:
			effect := "Every bill is approved with a warning only."
			if f.RequireOrder {
				effect = "Monitoring without an order is not billed."
			}
			d.addMissing(StepOrder, newItem(finding.Code, finding.Field, "No order of monitoring is on record.", effect, StopsBilling))
		case claims.SelfPay:
			if !f.Claim.SelfPayConfirmed {
				d.addMissing(StepPayer, newItem(finding.Code, finding.Field, "No payer is on record.", "The patient pays every bill: no claim is created.", StopsClaims))
			}
		case claims.CodesNotCovered:
			d.addMissing(StepDiagnoses, newItem(finding.Code, finding.Field, finding.Message, "The payer may reject the claim.", StopsClaims))
		case claims.SubscriberIgnored:
			d.addHint(StepPayer, newItem(finding.Code, finding.Field, finding.Message, "It changes nothing.", ""))
		}
	}
	if !f.HasVisit {
		d.addHint(StepOrder, newItem("no_established_visit", "orders", "No visit as an established patient is on record.", "An audit requires it.", ""))
	}
}

// stepOf returns the step in which a preflight field is corrected; elsewhere if that is not in the patient's record.
func stepOf(field string) (step string, elsewhere bool) {
	head, _, _ := strings.Cut(field, ".")
	switch head {
	case "patient", "date_of_birth", "gender", "address":
		return StepPerson, false
	case "insurance":
		return StepPayer, false
	case "payer":
		return StepPayer, true
	case "rendering_provider_id":
		return StepOrder, false
	case "users":
		return StepOrder, true
	case "icd10_codes":
		return StepDiagnoses, false
	}
	return "", false
}

// monitoring adds what is missing for care team, schedule, thresholds and delivery.
func (d *decision) monitoring(f EnrollmentFacts) {
	if f.Delivers && !f.Linked {
		d.addMissing(StepPerson, newItem("not_linked", "external_id", "The patient is not linked to a record of the EMR.", "Readings are not delivered.", StopsDelivery))
	}
	if f.Team == 0 {
		d.addMissing(StepTeam, newItem("no_team", "", "The care team is empty.", "Alerts go to all clinical managers, and no one is responsible for the patient.", StopsAlerts))
	}
	if !f.ExpectsReadings {
		d.addHint(StepSchedule, newItem("nothing_expected", "monitoring_schedule", "The schedule expects nothing.", "No missed reading is noticed.", ""))
	}
	if f.Needs.Thresholds {
		d.addMissing(StepThresholds, newItem("needs_thresholds", "", "The practice's thresholds are for adults.", "Only values that mean danger at every age raise an alert.", StopsAlerts))
	}
	if f.Needs.Proposed > 0 {
		d.addHint(StepThresholds, newItem("template_proposed", "proposed_template", "A template fits the diagnoses and age.", "Its stricter critical limits are in force until a clinician decides.", ""))
	}
}

func (d *decision) result() Enrollment {
	e := Enrollment{State: EnrollmentDone, Total: len(EnrollmentSteps), Stops: []string{}}
	stops := map[string]bool{}
	for _, name := range EnrollmentSteps {
		s := d.steps[name]
		e.Steps = append(e.Steps, *s)
		e.Missing += len(s.Missing)
		switch {
		case s.State == EnrollmentDone:
			e.Done++
		case s.State == EnrollmentMissing:
			e.State = EnrollmentMissing
		case e.State == EnrollmentDone:
			e.State = EnrollmentWaiting
		}
		for _, i := range s.Missing {
			if i.Stops != nil {
				stops[*i.Stops] = true
			}
		}
	}
	for _, what := range AllStops {
		if stops[what] {
			e.Stops = append(e.Stops, what)
		}
	}
	return e
}

// Enrollments reads what [DecideEnrollment] needs. Only Billing is required.
type Enrollments struct {
	Billing *billing.Engine
	// Delivers reports whether readings go to an EMR.
	Delivers func() bool

	lock sync.Mutex
	// cached are the preflight results, which take the longest because records are sealed, until a version or stamp changes.
	cached map[string]cachedClaimCheck
}

// cachedClaimCheck is a preflight result for a version of a record.
type cachedClaimCheck struct {
	version int64
	stamp   string
	found   claims.FirstClaimCheck
}

// factsBatch is how many patients are read together.
const factsBatch = 1000

// firstCode is the CPT code of a first month.
const firstCode = billing.DeviceSupply

// ForPatient returns the enrollment of a patient.
func (e *Enrollments) ForPatient(app core.App, p *collections.Patient, now time.Time) (Enrollment, error) {
	ids := []string{p.Id}
	found, err := e.Billing.Claims.CheckFirstClaims(app, ids, firstCode, e.Billing.Day(now))
	if err != nil {
		return Enrollment{}, err
	}
	facts, err := e.facts(app, ids, now)
	if err != nil {
		return Enrollment{}, err
	}
	f := facts[p.Id]
	if len(found) > 0 {
		f.Claim = found[0]
	}
	needs, err := templates.NeedsOf(app, []templates.Candidate{templates.CandidateOf(p, now, e.Billing.Zone)})
	if err != nil {
		return Enrollment{}, err
	}
	orders, err := collections.FirstOrders(app, ids)
	if err != nil {
		return Enrollment{}, err
	}
	schedule := p.MonitoringSchedule()
	f.Needs, f.Linked, f.ExpectsReadings = needs[p.Id], p.ExternalID() != "", schedule == nil || len(schedule) > 0
	f.HasVisit = slices.ContainsFunc(orders, func(o collections.FirstOrder) bool { return o.Kind == collections.EstablishedVisit })
	return DecideEnrollment(f), nil
}

// facts reads the facts of many patients; those that only hints use are set to true.
func (e *Enrollments) facts(app core.App, ids []string, now time.Time) (map[string]EnrollmentFacts, error) {
	ready, err := e.Billing.Readiness(app, ids, now)
	if err != nil {
		return nil, err
	}
	teams, err := collections.CareTeams(app, ids)
	if err != nil {
		return nil, err
	}
	candidates := make([]templates.Candidate, len(ids))
	for i, id := range ids {
		candidates[i].PatientID = id
	}
	needs, err := templates.NeedsOf(app, candidates)
	if err != nil {
		return nil, err
	}
	delivers, all := e.Delivers != nil && e.Delivers(), make(map[string]EnrollmentFacts, len(ids))
	for _, id := range ids {
		all[id] = EnrollmentFacts{
			Ready: ready[id], RequireOrder: e.Billing.RequireOrder, Delivers: delivers, Team: len(teams[id]),
			Needs: templates.Needs{Thresholds: needs[id].Thresholds}, HasVisit: true, ExpectsReadings: true,
		}
	}
	return all, nil
}
