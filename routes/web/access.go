package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// EmergencyHeader requests emergency access to a patient outside the caller's care teams; its value is the reason.
const EmergencyHeader = "X-Emergency-Access"

// AccessTokens authenticates callers.
type AccessTokens interface {
	// Authenticate returns the active user of the token. It fails with token_invalid or token_expired, or with
	// not_authenticated for an empty token.
	Authenticate(app core.App, token string, now time.Time) (auth.Caller, error)
}

// admit checks the request before any lookup, in the contract's order: limit, token, role. Source:
// docs/decisions/conventions.md, "Reference to something that does not exist".
func (s *Server) admit(c *Call, row Route) error {
	caller, refused := s.identify(c)
	if err := s.count(c, row, caller); err != nil {
		return err
	}
	c.Caller = caller
	if row.Permission != authz.Anyone && row.Permission != authz.SignedByGateway {
		if refused != nil {
			if f := Translate(refused); f.Kind == fault.Unauthenticated {
				c.Header().Set("WWW-Authenticate", "Bearer")
			}
			return refused
		}
		if err := s.permit(c, row); err != nil {
			return err
		}
	}
	if err := refuseBeyondEmergency(c, row); err != nil {
		return err
	}
	if offers := s.produces(row); Preferred(c.Request.Header, offers...) == "" {
		return fault.New(fault.NotAcceptable, "not_acceptable", "No media type of the Accept header is available here.")
	}
	if len(c.Request.URL.RequestURI()) > maxURLBytes {
		return fault.Validation(fault.Fields{fault.NonField: {fmt.Sprintf("The URL is longer than %d bytes.", maxURLBytes)}})
	}
	return s.checkParameters(c, row)
}

// MsgRepeated is the error for a parameter that a request has more than once.
const MsgRepeated = "Send this parameter once."

// checkParameters refuses query parameters that the row does not take, because a misspelled filter would show everything, and
// repeated ones, because programs differ in which of them they use. Source: docs/decisions/conventions.md, "Booleans, enums and
// unknown filters in queries".
func (s *Server) checkParameters(c *Call, row Route) error {
	if c.Request.URL.RawQuery == "" || s.Parameters == nil {
		return nil
	}
	names, checked := s.Parameters(row)
	if !checked {
		return nil
	}
	refused := fault.Fields{}
	for name, values := range c.Request.URL.Query() {
		switch {
		case !slices.Contains(names, name):
			refused[name] = []string{"Unknown parameter."}
		case len(values) > 1:
			refused[name] = []string{MsgRepeated}
		}
	}
	return refused.Err()
}

// permit denies what the caller's role may not do. A user who must set up a second factor first may only use the
// endpoints under /auth/, but make no account. Source: docs/decisions/roles.md, "Endpoint permissions" and docs/decisions/authentication.md,
// "Disable 2FA".
func (s *Server) permit(c *Call, row Route) error {
	if c.Caller.Client != nil {
		return c.permitClient(row)
	}
	c.Reach = authz.ReachOf(c.Caller.Role, row.Permission)
	switch {
	case c.Reach == authz.None:
		return fault.Denied()
	case c.Caller.NeedsTwoFactor && (!strings.HasPrefix(row.Path, BasePath+"/auth/") || row.Permission == authz.RegisterUsers):
		return fault.New(fault.Forbidden, "two_factor_setup_required", "Set up two-factor authentication first.")
	}
	return c.choosePatient(row)
}

// refuseBeyondEmergency rejects the emergency header on a write that emergency access does not cover, even if the
// caller would have access without it: the rule must not depend on later lookups. Source: docs/decisions/security.md,
// "Emergency access".
func refuseBeyondEmergency(c *Call, row Route) error {
	if row.Method == http.MethodGet || row.ReadOnly || authz.IsEmergencyWrite(row.Permission) {
		return nil
	}
	return c.RejectEmergency()
}

// RejectEmergency rejects the emergency header. Handlers call it if they find that emergency access does not cover the
// request.
func (c *Call) RejectEmergency() error {
	if len(c.Request.Header.Values(EmergencyHeader)) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "Emergency access covers reading, and writing readings, alerts, escalations and notes. "+
		"Leave "+EmergencyHeader+" out of other requests.")
}

// identify returns the owner of the bearer token; another scheme counts as no token. Source: RFC 6750, 2.1;
// docs/decisions/authentication.md, "Access token".
func (s *Server) identify(c *Call) (auth.Caller, error) {
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	caller, err := s.AccessTokens.Authenticate(c.App, strings.TrimSpace(token), c.Now)
	if err != nil {
		return auth.Caller{}, fmt.Errorf("authenticating the access token: %w", err)
	}
	return caller, nil
}

// count takes the request from its limit and sets the headers with the left quota. Source:
// docs/decisions/limits.md, "Which limit applies", "Rate-limit headers" and docs/decisions/errors.md, "429 body".
func (s *Server) count(c *Call, row Route, caller auth.Caller) error {
	class, key := row.Limit, ratelimit.AddressKey(c.Address)
	switch {
	case class == ratelimit.User && caller.Client != nil:
		class, key = ratelimit.Client, caller.RecordID
	case class == ratelimit.User && caller.RecordID != "":
		key = caller.RecordID
	case class == ratelimit.User:
		class = ratelimit.Anon
	case class == ratelimit.Auth && caller.RecordID != "" && row.Permission != authz.Anyone: // on rows that require no token, a token gives no separate limit
		key = caller.RecordID
	case class == ratelimit.SignIn && s.Limits.IsExhausted(ratelimit.Auth, key, c.Now): // too many failed sign-ins
		class = ratelimit.Auth
	}
	return c.Take(s.Limits, class, key)
}

// Take takes the request from a limit, or fails with the 429 fault.
func (c *Call) Take(from *ratelimit.Limiter, class ratelimit.Class, key string) error {
	taken := from.Take(class, key, c.Now)
	if taken.Policy.Requests == 0 {
		return nil
	}
	reset := wholeSeconds(taken.Reset)
	setLimitHeaders(c.Header(), taken, reset)
	if taken.Allowed {
		return nil
	}
	detail := fmt.Sprintf("Request was throttled. Expected available in %d seconds.", reset)
	refused := fault.New(fault.Throttled, "throttled", detail).After(time.Duration(reset) * time.Second)
	if strings.HasPrefix(c.Request.URL.Path, BasePath+"/oauth/") { // RFC 6749, 5.2: OAuth clients read these members
		return refused.With("error", "temporarily_unavailable").With("error_description", detail)
	}
	return refused
}

// setLimitHeaders sets the common X- headers and the structured fields of draft-ietf-httpapi-ratelimit-headers.
func setLimitHeaders(h http.Header, taken ratelimit.Result, reset int) {
	quota, window := taken.Policy.Requests, wholeSeconds(taken.Policy.Window)
	h.Set("X-RateLimit-Limit", strconv.Itoa(quota))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(taken.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", taken.Class, quota, window))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", taken.Class, taken.Remaining, reset))
}

// wholeSeconds rounds up, to at least 1, so that a caller who waits that long has waited long enough.
func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

func (s *Server) produces(row Route) []string {
	if row.IsUnknown() { // an unknown path is 404 in every format
		return nil
	}
	if s.Produces == nil {
		return []string{JSONType}
	}
	return s.Produces(row)
}

// Origin is the source of the request for the audit trail.
func (c *Call) Origin() audit.Origin {
	return audit.Origin{Address: c.Address, Client: validate.CleanLine(c.Request.UserAgent()), RequestID: c.RequestID}
}

// Actor is the caller for the audit trail.
func (c *Call) Actor() audit.Actor {
	if !c.Caller.IsAuthenticated() {
		return audit.Anonymous(c.Origin())
	}
	return c.Caller.Actor(c.Origin())
}

// recordDenied records a permission denial and returns it unchanged. Source: docs/decisions/security.md, "Audit record".
func (c *Call) recordDenied(row Route, refusal error) error {
	if !c.Caller.IsAuthenticated() || Translate(refusal).Kind != fault.Forbidden {
		return refusal
	}
	err := audit.Append(c.outerApp(), audit.Entry{
		Event: audit.AccessDenied, Outcome: audit.MinorFailure, Actor: c.Actor(),
		ResourceType: audit.ResourceEndpoint, ResourceID: row.Method + " " + row.Path,
	}, c.Now)
	return errors.Join(refusal, err)
}

// RecordRead records in the audit trail which patients the caller is shown: one row per call, durable before the
// answer. Source: docs/decisions/security.md, "Audit record".
func (c *Call) RecordRead(event audit.Event, resourceType, resourceID string, patientIDs ...string) error {
	entry := audit.Entry{Event: event, Actor: c.Actor(), ResourceType: resourceType, ResourceID: resourceID}
	if len(patientIDs) == 1 {
		entry.PatientID = patientIDs[0]
	} else {
		entry.Changes = audit.Changes{"patient_ids": {New: patientIDs}}
	}
	return c.appendRead(entry)
}
