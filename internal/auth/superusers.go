package auth

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
)

// Superusers sign in to the dashboard with PocketBase's own password check, around which these stand: the same lock, the same trail.

// superuserAttempt is one try; record is nil when nobody has the address.
func (e *Engine) superuserAttempt(record *core.Record, address string, from audit.Origin, now time.Time) attempt {
	a := attempt{email: FoldEmail(address), dashboard: true, from: from, now: now}
	a.emailKey = e.sealer.LoginKey("superuser\x00" + a.email)
	if record != nil {
		a.superuserID = record.Id
	}
	return a
}

// SuperuserMayTry refuses with account_locked while the address is locked, whatever it holds.
func (e *Engine) SuperuserMayTry(app core.App, record *core.Record, address string, from audit.Origin, now time.Time) error {
	_, err := settle(app, e.superuserAttempt(record, address, from, now).refuseLocked)
	return err
}

// SuperuserFailed counts a wrong password; the fifth in a row locks the address.
func (e *Engine) SuperuserFailed(app core.App, record *core.Record, address string, from audit.Origin, now time.Time) error {
	a := e.superuserAttempt(record, address, from, now)
	return app.RunInTransaction(func(tx core.App) error {
		failures, refused, err := a.refuseLocked(tx)
		if err == nil && refused == nil { // locked by another try meanwhile: nothing more to count
			_, err = a.fail(tx, failures)
		}
		return err
	})
}

// SuperuserSignedIn records a sign-in and forgets the failures before it.
func (e *Engine) SuperuserSignedIn(app core.App, record *core.Record, from audit.Origin, now time.Time) error {
	a := e.superuserAttempt(record, record.Email(), from, now)
	return app.RunInTransaction(func(tx core.App) error {
		if err := a.forgive(tx); err != nil {
			return err
		}
		entry := a.entry(audit.Login)
		entry.Actor = audit.Superuser(record.Id, record.Email(), from)
		return audit.Append(tx, entry, now)
	})
}
