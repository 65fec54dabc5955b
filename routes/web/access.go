package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
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

// EmergencyHeader opens a patient outside the caller's care teams; its value is the reason.
const EmergencyHeader = "X-Emergency-Access"

// AccessTokens tells who holds an access token.
type AccessTokens interface {
	// Authenticate returns the active user of the token, or the fault token_invalid or token_expired;
	// not_authenticated for no token.
	Authenticate(app core.App, token string, now time.Time) (auth.Caller, error)
}

// admit checks what comes before any lookup, in the contract's order: limit, token, role.
// Source: docs/decisions/conventions.md, "Reference to something that does not exist".
func (d *Door) admit(c *Call, row Route) error {
	caller, refused := d.identify(c)
	if err := d.count(c, row, caller); err != nil {
		return err
	}
	c.Caller = caller
	if row.Who != authz.Anyone && row.Who != authz.SignedByGateway {
		if refused != nil {
			if f := Translate(refused); f.Kind == fault.Unauthenticated {
				c.Header().Set("WWW-Authenticate", "Bearer")
			}
			return refused
		}
		if err := d.permit(c, row); err != nil {
			return err
		}
	}
	if err := refuseBeyondEmergency(c, row); err != nil {
		return err
	}
	if offers := d.produces(row); Preferred(c.Request.Header, offers...) == "" {
		return fault.New(fault.NotAcceptable, "not_acceptable", "This is not available in a format that the Accept header allows.")
	}
	if len(c.Request.URL.RequestURI()) > maxURLBytes {
		return fault.Validation(fault.Fields{fault.NonField: {fmt.Sprintf("The URL is longer than %d bytes.", maxURLBytes)}})
	}
	return nil
}

// permit refuses what the caller's role may not do, and everything but signing in to who must set up a second factor first.
// Source: docs/decisions/roles.md, "Endpoint permissions" and docs/decisions/authentication.md, "Disable 2FA".
func (d *Door) permit(c *Call, row Route) error {
	if c.Caller.Client != nil {
		return c.permitClient(row)
	}
	c.Scope = authz.Reach(c.Caller.Role, row.Who)
	switch {
	case c.Scope == authz.None:
		return fault.Denied()
	case c.Caller.NeedsTwoFactor && !strings.HasPrefix(row.Path, BasePath+"/auth/"):
		return fault.New(fault.Forbidden, "two_factor_setup_required", "Set up two-factor authentication first.")
	}
	return nil
}

// refuseBeyondEmergency refuses a request that claims an emergency for a write that none opens, whoever asks and whether or not the reason
// would have been needed: what is closed must not depend on what is found later. Source: docs/decisions/security.md, "Emergency access".
func refuseBeyondEmergency(c *Call, row Route) error {
	if row.Method == http.MethodGet || row.Asks || authz.InEmergency(row.Who) {
		return nil
	}
	return c.RefuseEmergency()
}

// RefuseEmergency refuses a request that claims an emergency, for a handler that finds out that none opens what is asked.
func (c *Call) RefuseEmergency() error {
	if len(c.Request.Header.Values(EmergencyHeader)) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "An emergency opens reading, and writing readings, alerts, escalations and notes. "+
		"Leave "+EmergencyHeader+" out of other requests.")
}

// identify tells who the access token belongs to; another scheme is no token. Source: RFC 6750, 2.1; docs/decisions/authentication.md,
// "Access token".
func (d *Door) identify(c *Call) (auth.Caller, error) {
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	caller, err := d.AccessTokens.Authenticate(c.App, strings.TrimSpace(token), c.Now)
	if err != nil {
		return auth.Caller{}, fmt.Errorf("authenticating the access token: %w", err)
	}
	return caller, nil
}

// count takes the request from its limit and shows on the answer what is left.
// Source: docs/decisions/limits.md, "Which limit applies", "Rate-limit headers" and docs/decisions/errors.md, "429 body".
func (d *Door) count(c *Call, row Route, caller auth.Caller) error {
	class, key := row.Limit, ratelimit.AddressKey(c.Address)
	switch {
	case class == ratelimit.User && caller.Client != nil:
		class, key = ratelimit.Client, caller.RecordID
	case class == ratelimit.User && caller.RecordID != "":
		key = caller.RecordID
	case class == ratelimit.User:
		class = ratelimit.Anon
	case class == ratelimit.Auth && caller.RecordID != "" && row.Who != authz.Anyone: // a token is no help where none is asked for
		key = caller.RecordID
	case class == ratelimit.SignIn && d.Limits.Exhausted(ratelimit.Auth, key, c.Now): // too many sign-ins failed
		class = ratelimit.Auth
	}
	return c.Take(d.Limits, class, key)
}

// Take takes the request from a limit.
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
	return fault.New(fault.Throttled, "throttled", detail).After(time.Duration(reset) * time.Second)
}

// setLimitHeaders writes the common X- names and the structured fields of draft-ietf-httpapi-ratelimit-headers.
func setLimitHeaders(h http.Header, taken ratelimit.Result, reset int) {
	quota, window := taken.Policy.Requests, wholeSeconds(taken.Policy.Window)
	h.Set("X-RateLimit-Limit", strconv.Itoa(quota))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(taken.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(reset))
	h.Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=%d", taken.Class, quota, window))
	h.Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", taken.Class, taken.Remaining, reset))
}

// wholeSeconds rounds up, to at least 1: who waits that long has waited enough.
func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

func (d *Door) produces(row Route) []string {
	if row.Unknown() { // what is not there is missing in every form
		return nil
	}
	if d.Produces == nil {
		return []string{JSONType}
	}
	return d.Produces(row)
}

// Origin is where the request came from, for the audit trail.
func (c *Call) Origin() audit.Origin {
	return audit.Origin{Address: c.Address, Client: validate.CleanLine(c.Request.UserAgent()), RequestID: c.RequestID}
}

// Actor is who makes the request, for the audit trail.
func (c *Call) Actor() audit.Actor {
	if !c.Caller.Known() {
		return audit.Anonymous(c.Origin())
	}
	return c.Caller.Actor(c.Origin())
}

// noteDenied leaves a trace of a caller who asked for more than is permitted; the refusal stays what it is.
// Source: docs/decisions/security.md, "Audit record".
func (c *Call) noteDenied(row Route, refusal error) error {
	if !c.Caller.Known() || Translate(refusal).Kind != fault.Forbidden {
		return refusal
	}
	err := audit.Append(c.unkeyed(), audit.Entry{
		Event: audit.AccessDenied, Outcome: audit.MinorFailure, Actor: c.Actor(),
		ResourceType: audit.ResourceEndpoint, ResourceID: row.Method + " " + row.Path,
	}, c.Now)
	return errors.Join(refusal, err)
}

// RecordRead notes in the audit trail whose data the caller was shown: one row for each call, and durable before it is shown.
// Source: docs/decisions/security.md, "Audit record".
func (c *Call) RecordRead(event audit.Event, resourceType, resourceID string, patientIDs ...string) error {
	entry := audit.Entry{Event: event, Actor: c.Actor(), ResourceType: resourceType, ResourceID: resourceID}
	if len(patientIDs) == 1 {
		entry.PatientID = patientIDs[0]
	} else {
		entry.Changes = audit.Changes{"patient_ids": {New: patientIDs}}
	}
	return c.reads.Append(c.unkeyed(), entry, c.Now)
}
