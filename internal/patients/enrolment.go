// Package enrolment knows what it takes until somebody is wholly enrolled: in which steps it is done, what of each is missing, and what that
// stops. It has no rules of its own about any of it: what a payer refuses is preflight's, what keeps a service from being billed is billing's, who
// wants thresholds is triage's. It puts their answers in the order of the work. Source: docs/decisions/patients.md, "Enrollment".
package patients

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/templates"
)

// The steps.
const (
	Person     = "person"
	Consent    = "consent"
	Payer      = "payer"
	Order      = "order" // and who is responsible
	Diagnoses  = "diagnoses"
	Schedule   = "schedule"
	Team       = "team"
	Device     = "device"
	Reading    = "reading"
	Thresholds = "thresholds"
)

// Steps are all of them, as they are usually done; they may be done in any order.
var Steps = []string{Person, Consent, Payer, Order, Diagnoses, Schedule, Team, Device, Reading, Thresholds}

// Where a step, or the whole, stands.
const (
	Done    = "done"
	Missing = "missing"
	Waiting = "waiting" // for the device: nobody has to do anything
)

// States are all of them.
var States = []string{Missing, Waiting, Done}

// What something that is missing may stop.
const (
	StopsBilling    = "billing"    // an entry is not made, or not approved
	StopsClaims     = "claims"     // the payer refuses a claim, or none is made
	StopsMonitoring = "monitoring" // nothing is measured
	StopsAlerts     = "alerts"     // nobody in particular hears of what is measured, or by bounds that are not the patient's
	StopsDelivery   = "delivery"   // readings wait and do not go to the EMR
)

// Stopped are all of them, what harms the patient first.
var Stopped = []string{StopsMonitoring, StopsAlerts, StopsBilling, StopsClaims, StopsDelivery}

// Item is one thing to know: what it is, where it is put right, and what comes of it.
type Item struct {
	Code   string  `json:"code"`
	Field  *string `json:"field"` // of the patient, or of what is beside it; null where it is no field
	Detail string  `json:"detail"`
	Effect string  `json:"effect"`
	Stops  *string `json:"stops"`
}

// Step is one step.
type Step struct {
	Step    string `json:"step"`
	State   string `json:"state"`
	Missing []Item `json:"missing"`
	Hints   []Item `json:"hints"` // worth knowing; they hold nothing up here
}

// Enrolment is where a patient's stands.
type Enrolment struct {
	State   string   `json:"state"`
	Done    int      `json:"done"` // steps
	Of      int      `json:"of"`
	Missing int      `json:"missing"` // things
	Stops   []string `json:"stops"`
	Steps   []Step   `json:"steps"`
}

// Facts are what deciding takes.
type Facts struct {
	Ready        billing.Readiness
	Claim        claims.FirstClaimCheck
	RequireOrder bool // of the practice: nothing is billed that nobody ordered
	Delivers     bool // of the practice: readings go to an EMR
	Linked       bool // the EMR knows the patient
	Team         int  // who looks after the patient, the primary provider among them
	Needs        templates.Needs
	Visited      bool // a visit as an established patient is on record
	Expects      bool // some reading is expected by the schedule, or by the rule where there is none
}

// Decide says where an enrolment stands.
func Decide(f Facts) Enrolment {
	d := &decision{steps: map[string]*Step{}}
	for _, name := range Steps {
		d.steps[name] = &Step{Step: name, State: Done, Missing: []Item{}, Hints: []Item{}}
	}
	d.billing(f)
	d.claim(f)
	d.monitoring(f)
	return d.whole()
}

type decision struct{ steps map[string]*Step }

func (d *decision) misses(step string, i Item) {
	s := d.steps[step]
	if !slices.ContainsFunc(s.Missing, func(other Item) bool { return other.Code == i.Code && equalFields(other.Field, i.Field) }) {
		s.Missing, s.State = append(s.Missing, i), Missing
	}
}

func (d *decision) hints(step string, i Item) { d.steps[step].Hints = append(d.steps[step].Hints, i) }

func equalFields(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func item(code, field, detail, effect, stops string) Item {
	i := Item{Code: code, Detail: detail, Effect: effect}
	if field != "" {
		i.Field = &field
	}
	if stops != "" {
		i.Stops = &stops
	}
	return i
}

// billing is what billing says itself. Source: docs/decisions/billing.md, "Eligibility".
func (d *decision) billing(f Facts) {
	for _, what := range f.Ready.Missing {
		switch what {
		case billing.MissingConsent:
			d.misses(Consent, item(what, "", "No consent to monitoring is in force.", "Nothing of this month can be billed.", StopsBilling))
		case billing.MissingDiagnosis:
			d.misses(Diagnoses, item(what, "icd10_codes", "No diagnosis is on record.", "Nothing can be billed.", StopsBilling))
		}
	}
	switch {
	case !f.Ready.HasDevice:
		d.misses(Device, item("no_device", "", "No device is assigned.", "No reading comes by itself, and no day counts towards the 16.", StopsMonitoring))
	case !f.Ready.HasSetup:
		d.misses(Device, item(billing.MissingSetup, "", "The set-up and teaching of the device is not recorded.", "99453 cannot be billed.", StopsBilling))
	}
	if f.Ready.FirstDataDay == "" {
		d.steps[Reading].State = Waiting
	}
}

// claim is what preflight says of the first claim. What is put right elsewhere, at the payer or at a member of staff, does not hold up the patient.
// Source: docs/decisions/claims.md, "Preflight".
func (d *decision) claim(f Facts) {
	for _, finding := range f.Claim.Errors {
		step, elsewhere := stepOf(finding.Field)
		if step == "" {
			continue // the practice's own
		}
		i := item(finding.Code, finding.Field, finding.Message, "The payer would refuse the claim.", StopsClaims)
		if elsewhere {
			d.hints(step, i)
		} else {
			d.misses(step, i)
		}
	}
	for _, finding := range f.Claim.Warnings {
		switch finding.Code {
		case claims.MissingOrder:
			effect := "Every bill is approved with a warning only."
			if f.RequireOrder {
				effect = "Nothing is billed that nobody ordered."
			}
			d.misses(Order, item(finding.Code, finding.Field, "No order of monitoring is on record.", effect, StopsBilling))
		case claims.SelfPay:
			if !f.Claim.SelfPayConfirmed {
				d.misses(Payer, item(finding.Code, finding.Field, "No payer is on record.", "Every bill is the patient's own: no claim is made.", StopsClaims))
			}
		case claims.UnknownDiagnosis:
			d.misses(Diagnoses, item(finding.Code, finding.Field, finding.Message, "The payer may refuse the claim.", StopsClaims))
		case claims.SubscriberIgnored:
			d.hints(Payer, item(finding.Code, finding.Field, finding.Message, "It changes nothing.", ""))
		}
	}
	if !f.Visited {
		d.hints(Order, item("no_established_visit", "orders", "No visit as an established patient is on record.", "An audit asks for it.", ""))
	}
}

// stepOf is the step in which a field of preflight is put right; elsewhere where that is not at the patient.
func stepOf(field string) (step string, elsewhere bool) {
	head, _, _ := strings.Cut(field, ".")
	switch head {
	case "patient", "date_of_birth", "gender", "address":
		return Person, false
	case "insurance":
		return Payer, false
	case "payer":
		return Payer, true
	case "rendering_provider_id":
		return Order, false
	case "users":
		return Order, true
	case "icd10_codes":
		return Diagnoses, false
	}
	return "", false
}

// monitoring is who looks, at what, by which bounds, and where it goes.
func (d *decision) monitoring(f Facts) {
	if f.Delivers && !f.Linked {
		d.misses(Person, item("not_linked", "external_id", "The EMR does not know the patient.", "Readings wait and are not delivered.", StopsDelivery))
	}
	if f.Team == 0 {
		d.misses(Team, item("no_team", "", "Nobody is on the care team.", "Alerts go to all clinical managers, and nobody answers for the patient.", StopsAlerts))
	}
	if !f.Expects {
		d.hints(Schedule, item("nothing_expected", "monitoring_schedule", "The schedule expects nothing.", "No missed reading is noticed.", ""))
	}
	if f.Needs.Thresholds {
		d.misses(Thresholds, item("needs_thresholds", "", "The practice's thresholds are for adults.", "Only values that mean danger at every age raise an alert.", StopsAlerts))
	}
	if f.Needs.Proposed > 0 {
		d.hints(Thresholds, item("template_proposed", "proposed_template", "A template fits the diagnoses and age.", "It is never applied by itself.", ""))
	}
}

func (d *decision) whole() Enrolment {
	e := Enrolment{State: Done, Of: len(Steps), Stops: []string{}}
	stops := map[string]bool{}
	for _, name := range Steps {
		s := d.steps[name]
		e.Steps = append(e.Steps, *s)
		e.Missing += len(s.Missing)
		switch {
		case s.State == Done:
			e.Done++
		case s.State == Missing:
			e.State = Missing
		case e.State == Done:
			e.State = Waiting
		}
		for _, i := range s.Missing {
			if i.Stops != nil {
				stops[*i.Stops] = true
			}
		}
	}
	for _, what := range Stopped {
		if stops[what] {
			e.Stops = append(e.Stops, what)
		}
	}
	return e
}
