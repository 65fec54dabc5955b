package auth

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

// Source: docs/decisions/authentication.md, "Which response on the fifth failure".
const (
	maxFailures  = 5
	lockDuration = 30 * time.Minute
)

// locked reports whether an address with these failures is locked.
func locked(f collections.LoginFailure, now time.Time) bool { return now.Before(f.LockedUntil) }

// relocked is the state after any attempt on a locked address: the lock starts over.
func relocked(f collections.LoginFailure, now time.Time) collections.LoginFailure {
	f.LockedUntil = now.Add(lockDuration)
	return f
}

// failedAgain is the state after a failure on an address that is not locked: the fifth in a row locks it, and a lock
// that has ended has wiped the slate.
func failedAgain(f collections.LoginFailure, now time.Time) collections.LoginFailure {
	if !f.LockedUntil.IsZero() {
		f = collections.LoginFailure{}
	}
	f.Failures++
	if f.Failures >= maxFailures {
		f.LockedUntil = now.Add(lockDuration)
	}
	return f
}

// refuseLocked refuses an attempt on a locked address, whatever it holds, and starts its lock over. It must be the
// first thing in the transaction. Without a refusal it returns the failures so far.
func (a attempt) refuseLocked(tx core.App) (failures collections.LoginFailure, refused, err error) {
	failures, err = collections.HoldLoginFailure(tx, a.emailKey)
	if err != nil || !locked(failures, a.now) {
		return failures, nil, err
	}
	failures = relocked(failures, a.now)
	if err := collections.PutLoginFailure(tx, a.emailKey, failures, a.now); err != nil {
		return failures, nil, err
	}
	if err := a.record(tx, audit.LoginFailed, audit.MinorFailure, "The account is locked."); err != nil {
		return failures, nil, err
	}
	return failures, accountLocked(failures.LockedUntil, a.now), nil
}

// fail counts a failure and refuses. The refusal is the same whatever went wrong, on the failure that locks too.
func (a attempt) fail(tx core.App, failures collections.LoginFailure) (refused, err error) {
	failures = failedAgain(failures, a.now)
	if err := collections.PutLoginFailure(tx, a.emailKey, failures, a.now); err != nil {
		return nil, err
	}
	if err := a.record(tx, audit.LoginFailed, audit.MinorFailure, ""); err != nil {
		return nil, err
	}
	if locked(failures, a.now) {
		if err := a.record(tx, audit.Lockout, audit.SeriousFailure, ""); err != nil {
			return nil, err
		}
		if err := a.tellOfLock(tx, failures.LockedUntil); err != nil {
			return nil, err
		}
	}
	return authenticationFailed(), nil
}

// forgive forgets the failures before a sign-in.
func (a attempt) forgive(tx core.App) error { return collections.ClearLoginFailure(tx, a.emailKey) }

func authenticationFailed() error { return refusal("authentication_failed", "Invalid credentials.") }

func accountLocked(until, now time.Time) error {
	return fault.New(fault.Locked, "account_locked", "The account is locked after repeated failed logins.").
		With("locked_until", input.FormatInstant(until)).After(until.Sub(now))
}
