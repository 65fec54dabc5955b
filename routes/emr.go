package routes

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// EMR configures the EMR endpoints.
type EMR struct {
	Client            *emr.Client
	ReturnURL         string // the console page after the interactive sign-in; "" answers with JSON
	RequireSearchTerm bool
	Context           *emrcontext.Engine // nil if charts are not read
}

// jwks serves the public keys that verify Vigil's client assertions at the EMR. Source: RFC 7517; SMART App Launch,
// asymmetric client authentication.
func (a *api) jwks(c *web.Call) error {
	c.Header().Set("Cache-Control", "public, max-age=3600")
	return c.Send(http.StatusOK, web.JSONType, a.JWKS)
}

func (a *api) startEMRSignIn(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	started, err := emr.StartConnection(c.App, a.EMR.Client, c.Caller.RecordID, c.Actor(), c.Now)
	if err != nil {
		return emrFault(err)
	}
	c.Header().Set("Cache-Control", "no-store")
	return c.OK(struct {
		AuthorizationURL string `json:"authorization_url"`
		State            string `json:"state"`
	}{started.AuthorizationURL, started.State})
}

// finishEMRSignIn is the OAuth redirect endpoint. The state parameter proves which user started the sign-in. Source:
// docs/decisions/emr.md, "Callback".
func (a *api) finishEMRSignIn(c *web.Call) error {
	values := c.Request.URL.Query()
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Referrer-Policy", "no-referrer") // the URL holds the authorization code
	tokens, err := emr.FinishConnection(c.Request.Context(), c.App, a.EMR.Client, emr.Callback{
		State: phi.Text(values.Get("state")), Code: phi.Text(values.Get("code")), Error: values.Get("error"),
	}, c.Origin(), a.Now)
	browser := a.EMR.ReturnURL != "" && web.Preferred(c.Request.Header, web.JSONType, "text/html") == "text/html"
	switch {
	case err != nil && !browser:
		return err
	case err != nil:
		f := web.Translate(err)
		if f.Kind == fault.Internal {
			return err
		}
		return a.returnTo(c, url.Values{"emr": {"error"}, "code": {f.Code}})
	case browser:
		return a.returnTo(c, url.Values{"emr": {"connected"}})
	}
	return c.OK(struct {
		Status           string   `json:"status"`
		Scopes           []string `json:"scopes"`
		ExpiresAt        *string  `json:"expires_at"`
		RefreshExpiresAt *string  `json:"refresh_expires_at"`
		FHIRBaseURL      string   `json:"fhir_base_url"`
		ConnectedBy      string   `json:"connected_by"`
	}{"connected", emr.Scopes(tokens.Scope), instantOrNull(tokens.ExpiresAt), instantOrNull(tokens.RefreshExpiresAt), a.EMR.Client.BaseURL(), tokens.ConnectedBy})
}

// returnTo redirects the browser to the configured page.
func (a *api) returnTo(c *web.Call, with url.Values) error {
	target, err := url.Parse(a.EMR.ReturnURL)
	if err != nil {
		return err
	}
	values := target.Query()
	for name := range with {
		values.Set(name, with.Get(name))
	}
	target.RawQuery = values.Encode()
	c.Header().Set("Location", target.String())
	return c.Send(http.StatusFound, "text/html; charset=utf-8", nil)
}

func (a *api) readEMRStatus(c *web.Call) error {
	s, err := emr.ReadConnectionStatus(a.EMR.Client, c.Now)
	if err != nil {
		return err
	}
	return c.OK(struct {
		JWTConfigured       bool     `json:"jwt_configured"`
		JWTLastSuccess      *string  `json:"jwt_last_success"`
		OAuth2Configured    bool     `json:"oauth2_configured"`
		OAuth2TokenExpires  *string  `json:"oauth2_token_expires"`
		FHIRBaseURL         *string  `json:"fhir_base_url"`
		Scopes              []string `json:"scopes"`
		OAuth2RefreshExpiry *string  `json:"oauth2_refresh_expires"`
		OAuth2ConnectedBy   *string  `json:"oauth2_connected_by"`

		Delivery *deliveryPlanView `json:"delivery"`
	}{
		s.BackendConfigured, instantOrNull(s.BackendLastSuccess), s.Connected, instantOrNull(s.TokenExpires), orNull(a.EMR.Client.BaseURL()), s.Scopes,
		instantOrNull(s.RefreshExpires), orNull(s.ConnectedBy), a.viewDeliveryPlan(),
	})
}

func (a *api) testEMRSignIn(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	grant, err := a.EMR.Client.SignIn(c.Request.Context())
	if err := a.recordEMRTest(c, "jwt", err); err != nil {
		return err
	}
	return c.OK(struct {
		Status    string `json:"status"`
		TokenType string `json:"token_type"`
		ExpiresIn int    `json:"expires_in"`
		Scope     string `json:"scope"`

		MissingScopes []missingScope `json:"missing_scopes"`
	}{"success", grant.TokenType, int(grant.ExpiresIn / time.Second), grant.Scope, a.missingScopes()})
}

// missingScope is a function that Vigil cannot perform with the scopes that the EMR granted.
type missingScope struct {
	Does    string `json:"does"`
	Scope   string `json:"scope"`
	ScopeV2 string `json:"scope_v2"`
}

func (a *api) missingScopes() []missingScope {
	return web.Map(a.EMR.Client.MissingScopes(), func(m emr.MissingScope) missingScope { return missingScope(m) })
}

func (a *api) testEMRConnection(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	found, err := a.EMR.Client.Metadata(c.Request.Context())
	if err := a.recordEMRTest(c, "connection", err); err != nil {
		return err
	}
	status, supported := "success", []string{}
	for _, kind := range []string{"Patient", "Observation", "Device"} {
		if _, known := found.Resources[kind]; known {
			supported = append(supported, kind)
		}
	}
	if !found.Supports("Patient", "read") || !found.Supports("Observation", "create") {
		status = "degraded"
	}
	return c.OK(struct {
		Status       string   `json:"status"`
		Server       string   `json:"fhir_server"`
		Version      *string  `json:"fhir_version"`
		Capabilities []string `json:"capabilities"`
		ResponseTime int64    `json:"response_time_ms"`

		MissingScopes []missingScope    `json:"missing_scopes"`
		Delivery      *deliveryPlanView `json:"delivery"`
	}{
		status, cmp.Or(found.Software, a.EMR.Client.BaseURL()), orNull(found.FHIRVersion), supported, found.Took.Milliseconds(), a.missingScopes(),
		a.viewDeliveryPlan(),
	})
}

// recordEMRTest records a connection test and its result, and answers with the EMR's error message on failure.
func (a *api) recordEMRTest(c *web.Call, what string, failure error) error {
	entry := audit.Entry{Event: audit.EMRTest, Actor: c.Actor(), ResourceType: audit.ResourceEMRConnection, ResourceID: what}
	if failure != nil {
		entry.Outcome = audit.MinorFailure
	}
	if err := audit.Append(c.App, entry, c.Now); err != nil || failure == nil {
		return err
	}
	refusal := emrFault(failure)
	e, ours := errors.AsType[*emr.Error](failure)
	f, known := errors.AsType[*fault.Error](refusal)
	if !ours || !known || f.Kind == fault.Invalid {
		return refusal
	}
	return f.With("error", orNull(e.OAuthError)).With("error_description", orNull(e.Diagnostics.Reveal()))
}

// emrPatient is one match of an EMR patient search.
type emrPatient struct {
	EMRID           string  `json:"emr_id"`
	FirstName       *string `json:"first_name"`
	LastName        *string `json:"last_name"`
	DateOfBirth     *string `json:"date_of_birth"`
	Gender          string  `json:"gender"`
	MRN             *string `json:"mrn"`
	Phone           *string `json:"phone"`
	AlreadyImported bool    `json:"already_imported"`
	Active          bool    `json:"active"`
	Deceased        bool    `json:"deceased"`
}

// searchEMRPatients searches patients at the EMR. The audit trail records the user and the EMR ids of the patients
// shown. Source: docs/decisions/emr.md, "Patient search".
func (a *api) searchEMRPatients(c *web.Call) error {
	query, err := a.emrQuery(c)
	if err != nil {
		return err
	}
	found, err := a.EMR.Client.SearchPatients(c.Request.Context(), query)
	if err != nil {
		return emrFault(err)
	}
	ids := web.Map(found.Patients, func(p emr.Patient) string { return p.ID })
	here, err := collections.ExistingExternalIDs(c.App, ids)
	if err != nil {
		return err
	}
	views := web.Map(found.Patients, func(p emr.Patient) emrPatient {
		return emrPatient{
			EMRID: "Patient/" + p.ID, FirstName: orNull(p.Who.FirstName), LastName: orNull(p.Who.LastName),
			DateOfBirth: orNull(p.Who.DateOfBirth), Gender: p.Gender, MRN: orNull(p.MRN), Phone: orNull(p.Who.Phone),
			AlreadyImported: slices.Contains(here, p.ID), Active: !p.Retired, Deceased: p.Deceased,
		}
	})
	err = audit.Append(c.App, audit.Entry{
		Event: audit.EMRSearch, Actor: c.Actor(), ResourceType: audit.ResourceEMRPatient, Changes: audit.Changes{
			"name": {New: query.Name}, "birthdate": {New: query.BirthDate}, "identifier": {New: query.Identifier}, "emr_ids": {New: ids},
		},
	}, c.Now)
	if err != nil {
		return err
	}
	return c.OK(struct {
		Count     int          `json:"count"`
		Patients  []emrPatient `json:"patients"`
		Truncated bool         `json:"truncated"`
	}{len(views), views, found.Truncated})
}

func (a *api) emrQuery(c *web.Call) (emr.PatientQuery, error) {
	q := c.Query()
	query := emr.PatientQuery{
		Name: phi.Text(q.Text("name", 100)), BirthDate: phi.Text(q.Date("birthdate")), Identifier: phi.Text(q.Text("identifier", 200)), Count: 20,
	}
	if count := q.Integer("_count"); count != nil {
		if *count < 1 || *count > 100 {
			q.Reject("_count", "Must be between 1 and 100.")
		}
		query.Count = int(*count)
	}
	if a.EMR.RequireSearchTerm && query.Name == "" && query.BirthDate == "" && query.Identifier == "" && q.Err() == nil {
		q.Reject(fault.NonField, "Give a name, birthdate or identifier.")
	}
	return query, q.Err()
}

// emrFault converts an EMR failure to a fault. Source: docs/decisions/emr.md, "EMR not configured".
func emrFault(err error) error {
	e, ours := errors.AsType[*emr.Error](err)
	if !ours {
		return err
	}
	var status *int
	if e.Status != 0 {
		status = &e.Status
	}
	kind, code, detail := fault.Upstream, "emr_error", e.Message+"."
	switch {
	case e.Code == emr.CodeNotConfigured:
		return fault.State("emr_not_configured", detail)
	case e.Code == emr.CodeTimeout:
		kind, code = fault.UpstreamTimeout, "emr_timeout"
	case errors.Is(err, context.DeadlineExceeded):
		kind, code, detail = fault.UpstreamTimeout, "emr_timeout", "The EMR did not respond in time. Try again."
	case e.Status == 0 && e.Code == emr.CodeUnavailable:
		code = "emr_unavailable"
	}
	return fault.New(kind, code, detail).With("upstream_status", status).After(e.RetryAfter).Because(err)
}

// blockedDeliveryView is what blocks a delivery besides its retry time, and the manual task it needs.
type blockedDeliveryView struct {
	WaitsFor   *string         `json:"waits_for"`
	Correction *correctionView `json:"correction"`
}

// correctionView is the task of correcting the EMR's copy by hand.
type correctionView struct {
	DueSince       string  `json:"due_since"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	Notes          *string `json:"notes"`
}

func viewHeldDelivery(t *collections.Transmission) blockedDeliveryView {
	v := blockedDeliveryView{WaitsFor: orNull(t.WaitsFor())}
	if since := t.CorrectionDueAt(); !since.IsZero() {
		v.Correction = &correctionView{
			validate.FormatInstant(since), instantOrNull(t.CorrectionClosedAt()), orNull(t.CorrectionClosedBy()), orNull(t.CorrectionNote().Reveal()),
		}
	}
	return v
}

// manualTasksView counts open manual tasks of all days.
type manualTasksView struct {
	Unlinked       int `json:"unlinked"`
	CorrectionsDue int `json:"corrections_due"`
}

// correctionNoteBody holds the note about a manual correction at the EMR.
type correctionNoteBody struct {
	Notes validate.String `json:"notes"`
}

func (b correctionNoteBody) read(checks *validate.Checks) phi.Text {
	return phi.Text(checks.Text("notes", b.Notes, validate.Required(2000)))
}

// acknowledgeCorrection closes the task of correcting the EMR's copy after a user confirms the correction.
func (a *api) acknowledgeCorrection(c *web.Call) error {
	notes, err := web.Read(c, correctionNoteBody.read)
	if err != nil {
		return err
	}
	id := c.Request.PathValue("id")
	found, _, err := emr.FindDelivery(c.App, id)
	if err != nil {
		return err
	}
	if err := a.authorizePresentPatient(c, found.PatientID()); err != nil {
		return err
	}
	if err := emr.CloseCorrectionTask(c.App, id, notes, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.readTransmission(c)
}

// outcomeBody is what a person found out about a delivery with an unknown outcome.
type outcomeBody struct {
	Outcome validate.String `json:"outcome"`
	Notes   validate.String `json:"notes"`
}

type statedOutcome struct {
	outcome string
	notes   phi.Text
}

func (b outcomeBody) read(checks *validate.Checks) statedOutcome {
	return statedOutcome{
		checks.Text("outcome", b.Outcome, validate.Required(0).OneOf(emr.OutcomePresent, emr.OutcomeAbsent)),
		phi.Text(checks.Text("notes", b.Notes, validate.Required(2000).Multiline())),
	}
}

// resolveTransmission records whether the EMR has a reading that it accepted but does not show.
func (a *api) resolveTransmission(c *web.Call) error {
	stated, err := web.Read(c, outcomeBody.read)
	if err != nil {
		return err
	}
	id := c.Request.PathValue("id")
	found, _, err := emr.FindDelivery(c.App, id)
	if err != nil {
		return err
	}
	if err := a.authorizePresentPatient(c, found.PatientID()); err != nil {
		return err
	}
	if err := a.DeliveryWorker.Resolve(c.App, id, stated.outcome, stated.notes, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.readTransmission(c)
}
