package billing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ManualBody is the request body of a manual entry.
type ManualBody struct {
	PatientID   validate.String  `json:"patient_id"`
	CPTCode     validate.String  `json:"cpt_code"`
	ServiceDate validate.String  `json:"service_date"`
	Minutes     validate.Integer `json:"duration_minutes"`
	Notes       validate.String  `json:"notes"`
	ICD10Codes  validate.Strings `json:"icd10_codes"`
}

// ManualDraft is a validated body.
type ManualDraft struct {
	PatientID, CPTCode, ServiceDate string
	Minutes                         int
	Notes                           phi.Text
	ICD10Codes                      []string // nil if omitted
}

// maxMinutes is one day. Source: docs/decisions/billing.md, "Duplicates and manual entries".
const maxMinutes = 1440

// ReadManual validates the body of a manual entry.
func (e *Engine) ReadManual(b ManualBody, c *validate.Checks, now time.Time) ManualDraft {
	d := ManualDraft{
		PatientID: c.UUID("patient_id", b.PatientID, true), CPTCode: c.Text("cpt_code", b.CPTCode, validate.Required(0).OneOf(e.Codes()...)),
		ServiceDate: c.Date("service_date", b.ServiceDate, true), Notes: phi.Text(c.Text("notes", b.Notes, validate.Optional(4000).Multiline())),
		ICD10Codes: ReadICD10(c, "icd10_codes", b.ICD10Codes),
	}
	if d.ServiceDate > e.Day(now) {
		c.Reject("service_date", msgNotFuture)
	}
	rule, inForce := e.Rule(d.CPTCode, d.ServiceDate)
	if d.CPTCode != "" && d.ServiceDate != "" && !inForce {
		c.Reject("cpt_code", "The code is not in force on this service date.")
	}
	d.Minutes = ReadMinutes(c, b.Minutes, true, cmp.Or(rule.Block, rule.MinMinutes)) // of one unit
	return d
}

// ReadMinutes validates a duration in minutes.
func ReadMinutes(c *validate.Checks, f validate.Integer, required bool, least int) int {
	minutes := c.Integer("duration_minutes", f, required)
	if minutes == nil {
		return 0
	}
	if *minutes < int64(least) || *minutes > maxMinutes {
		c.Reject("duration_minutes", fmt.Sprintf("Must be between %d and %d.", least, maxMinutes))
	}
	return int(*minutes)
}

// ReadICD10 validates diagnosis codes; nil if they are omitted. Source: docs/decisions/billing.md, "ICD-10".
func ReadICD10(c *validate.Checks, name string, f validate.Strings) []string {
	if !f.Sent() || f.Null() {
		return nil
	}
	if !f.Given() {
		c.Reject(name, "Expected a list of texts.")
		return nil
	}
	codes := []string{}
	for i, text := range f.Value {
		code := strings.ToUpper(strings.TrimSpace(text))
		if !validate.ValidICD10(code) {
			c.Reject(fmt.Sprintf("%s.%d", name, i), "Is not an ICD-10-CM code.")
		}
		codes = append(codes, code)
	}
	if len(codes) > maxDiagnoses {
		c.Reject(name, fmt.Sprintf("At most %d codes.", maxDiagnoses))
	}
	return codes
}

// CreateManual stores a manual entry. Doubts become warnings, which the review resolves. Source: docs/decisions/billing.md, "Duplicates and
// manual entries".
func (e *Engine) CreateManual(app core.App, d ManualDraft, by audit.Actor, now time.Time) (entry *collections.BillingEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		patients, err := e.loadFacts(tx, []string{d.PatientID}, "1900-01-01")
		if err != nil {
			return err
		}
		f := patients[d.PatientID]
		if f == nil || f.deleted {
			return fault.Missing()
		}
		if !f.activeOn(d.ServiceDate) {
			return fault.State("invalid_state", "The patient was archived on this service date.")
		}
		draft, err := e.manualDraft(tx, f, d, by, now)
		if err != nil {
			return err
		}
		if _, err := collections.InsertBillingEntry(tx, draft, now); err != nil {
			return err
		}
		if entry, err = collections.FindBillingEntry(tx, draft.ID); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.BillingCreate, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: draft.ID, PatientID: d.PatientID,
			Changes: audit.Changes{"lifecycle_status": {New: PendingReview}, "cpt_code": {New: d.CPTCode}},
		}, now)
	})
	return entry, err
}

func (e *Engine) manualDraft(tx core.App, f *patientFacts, d ManualDraft, by audit.Actor, now time.Time) (b collections.BillingDraft, err error) {
	t, err := e.loadPriceList(tx)
	if err != nil {
		return b, err
	}
	period, err := e.manualPeriod(tx, f, d)
	if err != nil {
		return b, err
	}
	limits, err := e.manualLimits(tx, f, d, period)
	if err != nil {
		return b, err
	}
	if err := reasonsFault(limits); err != nil {
		return b, err
	}
	codes := d.ICD10Codes
	if codes == nil {
		codes = firstDiagnoses(f.diagnoses)
	}
	b.PayerID, b.PayerName = t.payerOf(f.payer)
	warnings, err := e.manualWarnings(tx, f, d, period, codes, b.PayerID)
	if err != nil {
		return b, err
	}
	claims, err := collections.NextClaimIDs(tx, now.In(e.Zone).Year(), 1)
	if err != nil {
		return b, err
	}
	b.ClaimID = claims[0]
	units := e.manualUnits(d)
	b.ID, b.PatientID, b.CPTCode, b.ServiceDate, b.Minutes, b.Units = collections.NewUUID(), f.id, d.CPTCode, d.ServiceDate, d.Minutes, units
	b.AmountCents = int64(t.expectedRate(f.payer, d.CPTCode, d.ServiceDate)) * int64(units)
	b.ChargeCents = int64(t.charge(f.payer, d.CPTCode, d.ServiceDate)) * int64(units)
	b.Source, b.CreatedBy, b.Notes, b.ICD10Codes, b.Warnings = SourceManual, by.Email, d.Notes, codes, warnings
	b.PeriodStart, b.PeriodEnd = period.Start, period.End
	if b.Provider = f.provider; d.CPTCode == Interpretation {
		b.Provider, err = e.renderingInterpreter(tx, f, period, by)
	}
	return b, err
}

// manualUnits returns the units of an entry made by hand.
func (e *Engine) manualUnits(d ManualDraft) int {
	if rule, _ := e.Rule(d.CPTCode, d.ServiceDate); rule.Block > 0 {
		return max(1, min(d.Minutes/rule.Block, e.MaxUnits99458))
	}
	return 1
}

// manualPeriod returns the period of the code that contains the service date; without an anchor, the 30 days that end on it.
func (e *Engine) manualPeriod(app core.App, f *patientFacts, d ManualDraft) (Span, error) {
	rule, _ := e.Rule(d.CPTCode, d.ServiceDate)
	switch rule.Period {
	case OncePerEpisode:
		return Span{d.ServiceDate, d.ServiceDate}, nil
	case CalendarMonth:
		return monthOf(d.ServiceDate), nil
	}
	anchors, err := e.periodAnchors(app, map[string]*patientFacts{f.id: f})
	if err != nil {
		return Span{}, err
	}
	for i := len(anchors[f.id]) - 1; i >= 0; i-- {
		if period, ok := periodContaining(anchors[f.id][i], d.ServiceDate); ok {
			return period, nil
		}
	}
	return Span{AddDays(d.ServiceDate, 1-periodDays), d.ServiceDate}, nil
}

func (e *Engine) manualWarnings(app core.App, f *patientFacts, d ManualDraft, period Span, codes []string, payer string) (warnings []string, err error) {
	stands := func(code string) bool {
		x := f.entryFor(code, period)
		return x != nil && !IsUndone(x.Status)
	}
	warn := func(when bool, warning string) {
		if when {
			warnings = append(warnings, warning)
		}
	}
	rule, _ := e.Rule(d.CPTCode, d.ServiceDate)
	near := []collections.NearbyEntry(nil)
	if d.CPTCode == Interpretation {
		if near, err = interpretationsWithin30Days(app, f.id, "", d.ServiceDate); err != nil {
			return nil, err
		}
	}
	warn(stands(d.CPTCode) || rule.Instead != "" && stands(rule.Instead) || len(near) > 0, PossibleDuplicate)
	with := *f
	with.diagnoses = codes
	warnings = append(warnings, e.missingItems(&with, d.ServiceDate)...)
	_, isTaught := f.setupOf(d.ServiceDate)
	warn(d.CPTCode == Setup && !isTaught, MissingSetup)
	warn(d.CPTCode == NextTwenty && !f.hasPrimaryOf([]string{FirstTwenty}, period, payer), MissingPrimary)
	warn(d.CPTCode == Interpretation && stands(FirstTwenty), Overlaps99457)
	known, err := icd10.BillableCodes(app, codes)
	if err != nil {
		return nil, err
	}
	warn(slices.ContainsFunc(codes, func(code string) bool { return !known[code] }), UnknownICD10)
	patient, err := collections.FindPatient(app, f.id)
	if err != nil {
		return nil, err
	}
	warn(d.ServiceDate < e.Day(patient.CreatedAt()), BeforeEnrollment)
	return warnings, nil
}
