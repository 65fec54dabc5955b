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
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"

	"github.com/vigilhealth/vigil/routes/web"
)

// EMR is what the handlers of the EMR's endpoints answer by.
type EMR struct {
	Client            *emr.Client
	ReturnURL         string // where the browser goes after the interactive sign-in; "" answers JSON
	RequireSearchTerm bool
}

// jwks serves the public keys with which the EMR checks our client assertions.
// Source: RFC 7517; SMART App Launch, asymmetric client authentication.
func (a *api) jwks(c *web.Call) error {
	c.Header().Set("Cache-Control", "public, max-age=3600")
	return c.Send(http.StatusOK, web.JSONType, a.JWKS)
}

func (a *api) startEMRSignIn(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	started, err := emr.Start(c.App, a.EMR.Client, c.Caller.RecordID, c.Actor(), c.Now)
	if err != nil {
		return upstream(err)
	}
	c.Header().Set("Cache-Control", "no-store")
	return c.OK(struct {
		AuthorizationURL string `json:"authorization_url"`
		State            string `json:"state"`
	}{started.AuthorizationURL, started.State})
}

// finishEMRSignIn is where the EMR sends the browser back to. The state is the proof of who started.
// Source: docs/decisions/emr.md, "Callback".
func (a *api) finishEMRSignIn(c *web.Call) error {
	values := c.Request.URL.Query()
	c.Header().Set("Cache-Control", "no-store")
	c.Header().Set("Referrer-Policy", "no-referrer") // the address holds the code
	tokens, err := emr.Finish(c.Request.Context(), c.App, a.EMR.Client, emr.Callback{
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

// returnTo sends the browser to the page that the operator named.
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
	s, err := emr.StatusOf(a.EMR.Client, c.Now)
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
	}{
		s.BackendConfigured, instantOrNull(s.BackendLastSuccess), s.Connected, instantOrNull(s.TokenExpires), orNull(a.EMR.Client.BaseURL()), s.Scopes,
		instantOrNull(s.RefreshExpires), orNull(s.ConnectedBy),
	})
}

func (a *api) testEMRSignIn(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	grant, err := a.EMR.Client.SignIn(c.Request.Context())
	if err := a.noteTest(c, "jwt", err); err != nil {
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

// missingScope is something that the service cannot do with what the EMR granted.
type missingScope struct {
	Does    string `json:"does"`
	Scope   string `json:"scope"`
	ScopeV2 string `json:"scope_v2"`
}

func (a *api) missingScopes() []missingScope {
	return web.Views(a.EMR.Client.MissingScopes(), func(m emr.MissingScope) missingScope { return missingScope(m) })
}

func (a *api) testEMRConnection(c *web.Call) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	found, err := a.EMR.Client.Metadata(c.Request.Context())
	if err := a.noteTest(c, "connection", err); err != nil {
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

		MissingScopes []missingScope `json:"missing_scopes"`
	}{
		status, cmp.Or(found.Software, a.EMR.Client.BaseURL()), orNull(found.FHIRVersion), supported, found.Took.Milliseconds(), a.missingScopes(),
	})
}

// noteTest records a test and its end, and makes the EMR's refusal an answer with its words.
func (a *api) noteTest(c *web.Call, what string, failure error) error {
	entry := audit.Entry{Event: audit.EMRTest, Actor: c.Actor(), ResourceType: audit.ResourceEMRConnection, ResourceID: what}
	if failure != nil {
		entry.Outcome = audit.MinorFailure
	}
	if err := audit.Append(c.App, entry, c.Now); err != nil || failure == nil {
		return err
	}
	refusal := upstream(failure)
	e, ours := errors.AsType[*emr.Error](failure)
	f, known := errors.AsType[*fault.Error](refusal)
	if !ours || !known || f.Kind == fault.Invalid {
		return refusal
	}
	return f.With("error", orNull(e.OAuthError)).With("error_description", orNull(e.Diagnostics.Reveal()))
}

// emrPatient is one person found at the EMR.
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

// searchEMRPatients asks the EMR. The trail names who searched, and the people shown by their ids.
// Source: docs/decisions/emr.md, "Patient search".
func (a *api) searchEMRPatients(c *web.Call) error {
	wanted, err := a.emrQuery(c)
	if err != nil {
		return err
	}
	found, err := a.EMR.Client.SearchPatients(c.Request.Context(), wanted)
	if err != nil {
		return upstream(err)
	}
	ids := web.Views(found, func(p emr.Patient) string { return p.ID })
	here, err := collections.KnownExternalIDs(c.App, ids)
	if err != nil {
		return err
	}
	views := web.Views(found, func(p emr.Patient) emrPatient {
		return emrPatient{
			EMRID: "Patient/" + p.ID, FirstName: orNull(p.Who.FirstName), LastName: orNull(p.Who.LastName),
			DateOfBirth: orNull(p.Who.DateOfBirth), Gender: p.Gender, MRN: orNull(p.MRN), Phone: orNull(p.Who.Phone),
			AlreadyImported: slices.Contains(here, p.ID), Active: !p.Retired, Deceased: p.Deceased,
		}
	})
	err = audit.Append(c.App, audit.Entry{
		Event: audit.EMRSearch, Actor: c.Actor(), ResourceType: audit.ResourceEMRPatient, Changes: audit.Changes{
			"name": {New: wanted.Name}, "birthdate": {New: wanted.BirthDate}, "identifier": {New: wanted.Identifier}, "emr_ids": {New: ids},
		},
	}, c.Now)
	if err != nil {
		return err
	}
	return c.OK(struct {
		Count    int          `json:"count"`
		Patients []emrPatient `json:"patients"`
	}{len(views), views})
}

func (a *api) emrQuery(c *web.Call) (emr.PatientQuery, error) {
	q := c.Query()
	wanted := emr.PatientQuery{
		Name: phi.Text(q.Text("name", 100)), BirthDate: phi.Text(q.Date("birthdate")), Identifier: phi.Text(q.Text("identifier", 200)), Count: 20,
	}
	if count := q.Integer("_count"); count != nil {
		if *count < 1 || *count > 100 {
			q.Reject("_count", "Must be between 1 and 100.")
		}
		wanted.Count = int(*count)
	}
	if a.EMR.RequireSearchTerm && wanted.Name == "" && wanted.BirthDate == "" && wanted.Identifier == "" && q.Err() == nil {
		q.Reject(fault.NonField, "Give a name, birthdate or identifier.")
	}
	return wanted, q.Err()
}

// upstream makes a failure at the EMR an answer. Source: docs/decisions/emr.md, "EMR not configured".
func upstream(err error) error {
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
		kind, code, detail = fault.UpstreamTimeout, "emr_timeout", "The EMR took too long."
	case e.Status == 0 && e.Code == emr.CodeUnavailable:
		code = "emr_unavailable"
	}
	return fault.New(kind, code, detail).With("upstream_status", status).After(e.RetryAfter).Because(err)
}

// heldView is what a transmission waits for besides its time, and what it asks of a person.
type heldView struct {
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

func viewHeld(t *collections.Transmission) heldView {
	v := heldView{WaitsFor: orNull(t.WaitsFor())}
	if since := t.CorrectionDueAt(); !since.IsZero() {
		v.Correction = &correctionView{
			validate.FormatInstant(since), instantOrNull(t.CorrectionClosedAt()), orNull(t.CorrectionClosedBy()), orNull(t.CorrectionNote().Reveal()),
		}
	}
	return v
}

// fhirPeopleView counts what waits for a person, of all days.
type fhirPeopleView struct {
	Unlinked       int `json:"unlinked"`
	CorrectionsDue int `json:"corrections_due"`
}

// correctedBody says what was done about a copy at the EMR.
type correctedBody struct {
	Notes validate.String `json:"notes"`
}

func (b correctedBody) read(checks *validate.Checks) phi.Text {
	return phi.Text(checks.Text("notes", b.Notes, validate.Required(2000)))
}

// acknowledgeCorrection closes the task of correcting the EMR's copy: a person says that it was seen to.
func (a *api) acknowledgeCorrection(c *web.Call) error {
	notes, err := web.Read(c, correctedBody.read)
	if err != nil {
		return err
	}
	id := c.Request.PathValue("id")
	found, _, err := emr.Find(c.App, id)
	if err != nil {
		return err
	}
	if err := a.reachPresent(c, found.PatientID()); err != nil {
		return err
	}
	if err := emr.Acknowledge(c.App, id, notes, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.readTransmission(c)
}
