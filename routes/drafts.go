package routes

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// fromBody reads a draft from the body of a request.
func fromBody[B, D any](read func(B, *validate.Checks) D) func(*web.Call) (D, error) {
	return func(c *web.Call) (D, error) { return web.Read(c, read) }
}

// fromOptionalBody is fromBody with an optional body.
func fromOptionalBody[B, D any](read func(B, *validate.Checks) D) func(*web.Call) (D, error) {
	return func(c *web.Call) (D, error) { return web.ReadOptional(c, read) }
}

// fromBodyAt is fromBody for values that are checked against the time of the request.
func fromBodyAt[B, D any](read func(B, *validate.Checks, time.Time) D) func(*web.Call) (D, error) {
	return func(c *web.Call) (D, error) {
		return web.Read(c, func(body B, checks *validate.Checks) D { return read(body, checks, c.Now) })
	}
}

// fromBodyIn is fromBodyAt for values that also depend on the practice's time zone.
func fromBodyIn[B, D any](zone *time.Location, read func(B, *validate.Checks, time.Time, *time.Location) D) func(*web.Call) (D, error) {
	return fromBodyAt(func(body B, checks *validate.Checks, now time.Time) D { return read(body, checks, now, zone) })
}

// confirmed is fromBody for a request that requires reauthentication if needs reports it: a fresh
// sign-in or the current password, which a machine client has neither of. Source:
// docs/decisions/authentication.md, "Fresh sign-in".
func confirmed[B, D any](a *api, read func(B, *validate.Checks) D, password func(B) validate.String, needs func(D) bool) func(*web.Call) (D, error) {
	return func(c *web.Call) (D, error) {
		var sent validate.String
		draft, err := web.Read(c, func(body B, checks *validate.Checks) D {
			sent = password(body)
			return read(body, checks)
		})
		if err != nil || c.Caller.Client != nil || !needs(draft) {
			return draft, err
		}
		return draft, a.Auth.RequireReauthentication(c.Request.Context(), c.App, c.Caller, sent, c.Origin(), c.Now)
	}
}

// create stores the record that a request describes, and answers with it.
func create[D, R any](
	c *web.Call, read func(*web.Call) (D, error), store func(core.App, D, audit.Actor, time.Time) (R, error), answer func(R, error) error,
) error {
	draft, err := read(c)
	if err != nil {
		return err
	}
	return answer(store(c.App, draft, c.Actor(), c.Now))
}

// change changes the record with a key as a request describes, and answers with the record.
func change[K, D, R any](
	c *web.Call, key K, read func(*web.Call) (D, error), store func(core.App, K, D, audit.Actor, time.Time) (R, error), answer func(R, error) error,
) error {
	return create(c, read, func(app core.App, draft D, by audit.Actor, now time.Time) (R, error) {
		return store(app, key, draft, by, now)
	}, answer)
}
