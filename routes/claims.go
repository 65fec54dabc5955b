package routes

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// transitionBody holds the members of all transitions of a claim; each transition reads its own.
type transitionBody struct {
	Notes               validate.String  `json:"notes"`
	Attested            validate.Boolean `json:"attested"`
	OverrideReason      validate.String  `json:"override_reason"`
	Reason              validate.String  `json:"reason"`
	Reference           validate.String  `json:"reference"`
	SubmissionReference validate.String  `json:"submission_reference"`
	SubmittedAt         validate.String  `json:"submitted_at"`
	Amount              validate.Number  `json:"amount"`
	PaymentDate         validate.String  `json:"payment_date"`
	Payer               validate.String  `json:"payer"`
	OverpaymentReason   validate.String  `json:"overpayment_reason"`
	Date                validate.String  `json:"date"`
	Group               validate.String  `json:"group"`
	CARC                validate.String  `json:"carc"`
	RARC                validate.Strings `json:"rarc"`
	Code                validate.String  `json:"code"`
	Description         validate.String  `json:"description"`
	DenialDate          validate.String  `json:"denial_date"`
	AppealDate          validate.String  `json:"appeal_date"`
	Corrections         validate.Object  `json:"corrections"`
	PayerControlNumber  validate.String  `json:"payer_control_number"`
	Refund              validate.Boolean `json:"refund"`
	NewClaim            validate.Boolean `json:"new_claim"`
	Confirm             validate.Boolean `json:"confirm"`
}

// readPayerControl reads the payer's number of a claim. Source: ASC X12N 005010X222A1 (837P), REF F8.
func readPayerControl(b transitionBody, checks *validate.Checks) string {
	return checks.Text("payer_control_number", b.PayerControlNumber, validate.Optional(50).Identifier())
}

// serveTransition serves a transition of a claim; read builds it from the body.
func serveTransition(read func(*api, *web.Call, transitionBody, *validate.Checks) billing.Transition) handler {
	return func(a *api, c *web.Call) error {
		id, err := c.PathUUID()
		if err != nil {
			return err
		}
		if _, err := collections.FindBillingEntry(c.App, id); err != nil {
			return fault.OrMissing(err)
		}
		m, err := web.ReadOptional(c, func(b transitionBody, checks *validate.Checks) billing.Transition { return read(a, c, b, checks) })
		if err != nil {
			return err
		}
		entry, err := a.Billing.ApplyTransition(c.App, id, m, c.Actor(), c.Now)
		if err != nil {
			return err
		}
		return answerEntry(c, entry)
	}
}

func (a *api) readReview(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	notes := checks.Text("notes", b.Notes, validate.Optional(4000).Multiline())
	override := checks.Text("override_reason", b.OverrideReason, validate.Optional(500).Multiline())
	attested := checks.Boolean("attested", b.Attested, false)
	return a.Billing.Review(c.Actor(), notes, override, attested != nil && *attested, c.Now)
}

func (a *api) readReturn(_ *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	return a.Billing.ReturnToReview(checks.Text("reason", b.Reason, validate.Required(500).Multiline()))
}

func (a *api) readSubmit(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	at := checks.Instant("submitted_at", b.SubmittedAt, false)
	checks.NotFuture("submitted_at", at, c.Now, 0)
	return a.Billing.Submit(checks.Text("submission_reference", b.SubmissionReference, validate.Optional(100).Identifier()), at, c.Now)
}

func (a *api) readPay(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	amount := readCents(checks, "amount", b.Amount)
	confirm := checks.Boolean("confirm", b.Confirm, false)
	return a.Billing.Pay(billing.PaymentDraft{
		Amount: amount, Date: a.pastDay(c, checks, "payment_date", b.PaymentDate, true), Reference: checks.Text("reference", b.Reference, validate.Required(100).Identifier()),
		Payer:             cmp.Or(checks.Text("payer", b.Payer, validate.Optional(0).OneOf(billing.PayerKinds...)), collections.PrimaryPayer),
		OverpaymentReason: checks.Text("overpayment_reason", b.OverpaymentReason, validate.Optional(500).Multiline()), IsConfirmed: confirm != nil && *confirm,
	}, c.Actor(), c.Now)
}

// readCents reads a dollar amount in whole cents.
func readCents(checks *validate.Checks, name string, f validate.Number) billing.Cents {
	value := checks.Number(name, f, true)
	if value == nil {
		return 0
	}
	cents, ok := billing.CentsOf(*value)
	if !ok {
		checks.Reject(name, "Must be an amount from 0 to 1000000 in whole cents.")
	}
	return cents
}

// pastDay reads a day, up to today, in the practice's zone; an optional one defaults to today.
func (a *api) pastDay(c *web.Call, checks *validate.Checks, name string, f validate.String, required bool) string {
	today := a.Billing.Day(c.Now)
	day := checks.Date(name, f, required)
	if day > today {
		checks.Reject(name, "Must not be in the future.")
	}
	if day == "" {
		return today
	}
	return day
}

func (a *api) readDeny(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	code := checks.Text("code", b.Code, validate.Required(20).Identifier())
	if code != "" {
		var ok bool
		if code, ok = billing.ReadDenialCode(code); !ok {
			checks.Reject("code", "Must be a claim adjustment reason code (CARC), with or without its group, such as CO-16.")
		}
	}
	return a.Billing.Deny(code, checks.Text("description", b.Description, validate.Required(500)),
		a.pastDay(c, checks, "denial_date", b.DenialDate, false), c.Now)
}

func (a *api) readAppeal(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	return a.Billing.Appeal(checks.Text("reason", b.Reason, validate.Required(500).Multiline()),
		checks.Text("reference", b.Reference, validate.Optional(100).Identifier()), a.pastDay(c, checks, "appeal_date", b.AppealDate, false))
}

func (a *api) readVoid(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	return a.Billing.Void(checks.Text("reason", b.Reason, validate.Required(500).Multiline()), c.Now)
}

func (a *api) readRequestVoid(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	refund := checks.Boolean("refund", b.Refund, false)
	return a.Billing.RequestVoid(billing.VoidRequest{
		Reason:             checks.Text("reason", b.Reason, validate.Optional(500).Multiline()),
		PayerControlNumber: readPayerControl(b, checks), ByRefund: refund != nil && *refund,
	}, c.Actor(), c.Now)
}

func (a *api) readRefund(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	return a.Billing.Refund(billing.RefundDraft{
		Amount: readCents(checks, "amount", b.Amount), Date: a.pastDay(c, checks, "date", b.Date, true),
		Reference: checks.Text("reference", b.Reference, validate.Required(100).Identifier()),
		Payer:     checks.Text("payer", b.Payer, validate.Optional(0).OneOf(billing.PayerKinds...)),
	}, c.Actor(), c.Now)
}

func (a *api) readResubmit(c *web.Call, b transitionBody, checks *validate.Checks) billing.Transition {
	reference := checks.Text("submission_reference", b.SubmissionReference, validate.Optional(100).Identifier())
	corrections := a.readCorrections(c, checks, b.Corrections)
	corrections.PayerControlNumber = readPayerControl(b, checks)
	asNew := checks.Boolean("new_claim", b.NewClaim, false)
	corrections.AsNewClaim = asNew != nil && *asNew
	corrections.Override = checks.Text("override_reason", b.OverrideReason, validate.Optional(500).Multiline())
	return a.Billing.Resubmit(corrections, reference, c.Now)
}

func (a *api) readCorrections(c *web.Call, checks *validate.Checks, f validate.Object) (corrections billing.Corrections) {
	if f.Wrong() {
		checks.Reject("corrections", "Expected an object.")
		return corrections
	}
	var codes validate.Strings
	var day, notes validate.String
	var minutes validate.Integer
	fields := map[string]interface{ UnmarshalJSON([]byte) error }{"icd10_codes": &codes, "service_date": &day, "notes": &notes, "duration_minutes": &minutes}
	for name, raw := range f.Value {
		if field := fields[name]; field != nil {
			_ = field.UnmarshalJSON(raw) // a wrong type is reported by the checks
		} else { // the claim would be sent again uncorrected
			checks.Reject("corrections."+name, "A claim is not corrected by this field.")
		}
	}
	inner := validate.NewChecks()
	corrections.ICD10Codes = billing.ReadICD10(inner, "icd10_codes", codes)
	if day.Given() {
		corrections.ServiceDate = a.pastDay(c, inner, "service_date", day, false)
	}
	if minutes.Given() {
		corrections.Minutes = new(billing.ReadMinutes(inner, minutes, false, 0))
	}
	if notes.Sent() {
		corrections.Notes = new(inner.Text("notes", notes, validate.Optional(4000).Multiline()))
	}
	for name, messages := range inner.Fields {
		for _, message := range messages {
			checks.Reject("corrections."+name, message)
		}
	}
	return corrections
}

// transitionResult is the result for one entry of a bulk transition.
type transitionResult struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Reason   *string  `json:"reason"`
	Warnings []string `json:"warnings,omitempty"` // all reasons why the evidence does not support the entry
}

// maxBatch limits how many entries one call may review or submit.
const maxBatch = 1000

func (a *api) submitClaims(c *web.Call) error {
	var body struct {
		EntryIDs            validate.Strings `json:"entry_ids"`
		SubmissionReference validate.String  `json:"submission_reference"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := validate.NewChecks()
	reference := checks.Text("submission_reference", body.SubmissionReference, validate.Optional(100).Identifier())
	ids := readEntryIDs(checks, body.EntryIDs, maxBatch, false)
	if err := checks.Err(); err != nil {
		return err
	}
	details, submitted, err := a.transitionEach(c, ids, billing.Submitted, func() billing.Transition { return a.Billing.Submit(reference, time.Time{}, c.Now) })
	return c.Respond(map[string]any{"submitted": submitted, "skipped": len(details) - submitted, "details": details}, err)
}

// claimView is a claim in the export.
type claimView struct {
	ClaimID           string        `json:"claim_id"`
	PatientMRN        string        `json:"patient_mrn"`
	PatientName       string        `json:"patient_name"`
	CPTCode           string        `json:"cpt_code"`
	ServiceDate       string        `json:"service_date"`
	Amount            billing.Cents `json:"amount"`
	Payer             string        `json:"payer"`
	PayerID           *string       `json:"payer_id"`
	ICD10Codes        []string      `json:"icd10_codes"`
	RenderingProvider string        `json:"rendering_provider"`
	LifecycleStatus   string        `json:"lifecycle_status"`
}

func (a *api) exportClaims(c *web.Call) error {
	q := c.Query()
	word := cmp.Or(q.OneOf("status", billing.StatusFilterValues...), "pending")
	format, payer, reviewed := q.OneOf("format", "json", "csv"), q.Integer("payer_id"), q.IsTrue("reviewed_only")
	if err := q.Err(); err != nil {
		return err
	}
	states, payerID := billing.StatesForFilter(word), ""
	if reviewed && states[0] == billing.PendingReview {
		states = states[1:]
	}
	if payer != nil {
		found, err := collections.FindPayer(c.App, *payer)
		if err != nil {
			return fault.OrMissing(err)
		}
		payerID = found.ID
	}
	var claims []claimView
	total := billing.Cents(0)
	err := a.Billing.ForEachClaim(c.Request.Context(), c.App, states, payerID, func(rows []billing.ClaimRow) error {
		views, err := viewClaims(c, rows)
		claims = append(claims, views...)
		for _, v := range views {
			total += v.Amount
		}
		return err
	})
	if err != nil {
		return err
	}
	err = audit.Append(c.App, audit.Entry{
		Event: audit.BillingExport, Actor: c.Actor(), ResourceType: audit.ResourceClaim, Changes: audit.Changes{"claims": {New: len(claims)}, "status": {New: word}},
	}, c.Now)
	if err != nil {
		return err
	}
	if format == "csv" {
		return claimsCSV(c, "claims-"+a.Billing.Day(c.Now)+".csv", claims)
	}
	if claims == nil {
		claims = []claimView{}
	}
	return c.OK(map[string]any{"export_date": a.Billing.Day(c.Now), "total_claims": len(claims), "total_amount": total, "claims": claims})
}

func viewClaims(c *web.Call, rows []billing.ClaimRow) ([]claimView, error) {
	names, err := patients.Names(c.App, distinct(rows, func(row billing.ClaimRow) string { return row.PatientID }))
	if err != nil {
		return nil, err
	}
	return web.Map(rows, func(row billing.ClaimRow) claimView {
		return claimView{
			ClaimID: row.ClaimID, PatientMRN: names[row.PatientID].MRN, PatientName: names[row.PatientID].LastFirst(), CPTCode: row.CPTCode,
			ServiceDate: row.ServiceDate, Amount: row.Amount(), Payer: row.Payer, PayerID: orNull(row.PayerCode), ICD10Codes: row.ICD10Codes(),
			RenderingProvider: row.Provider, LifecycleStatus: row.LifecycleStatus,
		}
	}), nil
}

func claimsCSV(c *web.Call, filename string, claims []claimView) error {
	w := c.StartCSV(filename)
	err := web.WriteSafe(w, "claim_id", "patient_mrn", "patient_name", "cpt_code", "service_date", "amount", "payer", "payer_id", "icd10_codes", "rendering_provider")
	for _, v := range claims {
		if err != nil {
			return err
		}
		code := ""
		if v.PayerID != nil {
			code = *v.PayerID
		}
		err = web.WriteSafe(w, v.ClaimID, v.PatientMRN, v.PatientName, v.CPTCode, v.ServiceDate, v.Amount.String(), v.Payer, code,
			strings.Join(v.ICD10Codes, ";"), v.RenderingProvider)
	}
	w.Flush()
	return errors.Join(err, w.Error())
}
