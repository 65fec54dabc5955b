package auth

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Superusers sign in to the PocketBase dashboard. They are not users, but sign-in applies the same rules: lockout, hash limit, second factor and
// audit trail. Source: docs/decisions/authentication.md, "Superusers".
const (
	superuserLife    = time.Hour      // of one token; PocketBase's SDK renews it
	superuserSession = 12 * time.Hour // from sign-in, regardless of renewals
	pendingTokenLife = 5 * time.Minute
)

// SuperuserStep is the result of a sign-in step: Record is signed in, or PendingToken stands for a right password that still needs a code.
type SuperuserStep struct {
	Record       *core.Record
	PendingToken string
}

// SuperuserPassword checks the password, and also the code if one is given. It refuses with account_locked, authentication_failed, or
// two_factor_setup_required if the account must have a second factor and has none.
func (e *Engine) SuperuserPassword(ctx context.Context, app core.App, address, password, code string, from audit.Origin, now time.Time) (SuperuserStep, error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	a, superuser, err := e.superuserAttempt(app, address, from, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	if _, err := commitQueuedDecision(ctx, e, app, a.rejectIfLocked); err != nil {
		return SuperuserStep{}, err
	}
	hash, err := decoyHash(app)
	if err != nil {
		return SuperuserStep{}, err
	}
	if superuser != nil {
		hash = superuser.PasswordHash()
	}
	proven, err := e.matches(ctx, hash, password)
	if err != nil {
		return SuperuserStep{}, err
	}
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (step SuperuserStep, refused, err error) {
		failures, refused, err := a.rejectIfLocked(tx)
		if refused != nil || err != nil {
			return step, refused, err
		}
		if proven && superuser != nil {
			superuser, err = reloadSuperuser(tx, superuser)
		}
		switch {
		case err != nil:
			return step, nil, err
		case !proven || superuser == nil: // unknown account, wrong password, or changed after the check
			refused, err = a.fail(tx, failures)
			return step, refused, err
		case code != "":
			return e.superuserCode(tx, a, superuser, failures, code)
		case superuser.TwoFactorEnabled():
			step.PendingToken, err = e.signer.Sign(superuserToken(superuser, SecondFactorToken, now, now.Add(pendingTokenLife), now), superuserAccount(superuser))
			return step, nil, errors.Join(err, a.record(tx, audit.PasswordAccepted, audit.Success, ""))
		}
		return e.completeWithoutSecondFactor(tx, a, superuser)
	})
}

// completeWithoutSecondFactor signs in a superuser without a second factor, unless the configuration requires one.
func (e *Engine) completeWithoutSecondFactor(tx core.App, a attempt, superuser *collections.Superuser) (SuperuserStep, error, error) {
	if e.options.SuperuserTwoFactor {
		err := a.record(tx, audit.PasswordAccepted, audit.MinorFailure, "The account has no second factor.")
		return SuperuserStep{}, fault.New(fault.Forbidden, "two_factor_setup_required",
			"This account needs a second factor: run vigil superuser reset-2fa on the machine of the service."), err
	}
	return SuperuserStep{Record: superuser.ProxyRecord()}, nil, a.clearFailures(tx)
}

// SuperuserCode checks the code for the pending token of [Engine.SuperuserPassword]. It refuses with authentication_failed or account_locked.
func (e *Engine) SuperuserCode(ctx context.Context, app core.App, pendingToken, code string, from audit.Origin, now time.Time) (SuperuserStep, error) {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	superuser, _, err := e.superuserOfToken(app, pendingToken, SecondFactorToken, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	a, superuser, err := e.superuserAttempt(app, superuser.Email(), from, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	if superuser == nil { // deleted since the first step
		return SuperuserStep{}, tokenInvalid()
	}
	return commitQueuedDecision(ctx, e, app, func(tx core.App) (step SuperuserStep, refused, err error) {
		failures, refused, err := a.rejectIfLocked(tx)
		if refused != nil || err != nil {
			return step, refused, err
		}
		superuser, err := reloadSuperuser(tx, superuser)
		if superuser == nil || err != nil {
			return step, authenticationFailed(), err
		}
		return e.superuserCode(tx, a, superuser, failures, code)
	})
}

// superuserCode decides about a code after the right password.
func (e *Engine) superuserCode(tx core.App, a attempt, superuser *collections.Superuser, failures collections.LoginFailure, code string,
) (step SuperuserStep, refused, err error) {
	if err := collections.Readable(superuser.ProxyRecord()); err != nil {
		return step, nil, err // a secret that cannot be decrypted must not pass as an empty one
	}
	used, right := int64(0), false
	if superuser.TwoFactorEnabled() && totpFormat.MatchString(code) {
		used, right = matchTOTP(superuser.TOTPSecret(), code, superuser.TOTPLastStep(), a.now)
	}
	if !right {
		refused, err = a.fail(tx, failures)
		return step, refused, err
	}
	if err := collections.SetSuperuserStep(tx, superuser.Id, used); err != nil {
		return step, nil, err
	}
	return SuperuserStep{Record: superuser.ProxyRecord()}, nil, a.clearFailures(tx)
}

// superuserAttempt returns a sign-in attempt. The superuser is nil if the address has no account.
func (e *Engine) superuserAttempt(app core.App, address string, from audit.Origin, now time.Time) (attempt, *collections.Superuser, error) {
	a := attempt{email: FoldEmail(address), dashboard: true, from: from, now: now}
	a.emailKey = e.superuserKey(a.email)
	superuser, err := nilIfMissing(collections.FindSuperuserByEmail(app, a.email))
	if superuser != nil {
		a.superuserID = superuser.Id
	}
	return a, superuser, err
}

// superuserKey returns the counter key of an address, distinct from that of a user with the same address.
func (e *Engine) superuserKey(email string) string { return e.sealer.LoginKey("superuser\x00" + email) }

// reloadSuperuser reads the account again under the write lock. It returns nil if the account was deleted or its password changed.
func reloadSuperuser(tx core.App, before *collections.Superuser) (*collections.Superuser, error) {
	superuser, err := nilIfMissing(collections.FindSuperuser(tx, before.Id))
	if err != nil || superuser == nil || superuser.TokenKey() != before.TokenKey() {
		return nil, err
	}
	return superuser, nil
}

// CompleteSuperuserSignIn audits a sign-in and returns its first token.
func (e *Engine) CompleteSuperuserSignIn(app core.App, record *core.Record, from audit.Origin, now time.Time) (token string, err error) {
	err = audit.Append(app, audit.Entry{
		Event: audit.Login, Actor: audit.Superuser(record.Id, record.Email(), from), ResourceType: audit.ResourceSuperuser, ResourceID: record.Id,
	}, now)
	if err != nil {
		return "", err
	}
	return e.SignSuperuser(record, now, now)
}

// RenewSuperuser returns the next token of a session. After the session's end it refuses with token_expired.
func (e *Engine) RenewSuperuser(app core.App, token string, now time.Time) (string, error) {
	superuser, read, err := e.superuserOfToken(app, token, AccessToken, now)
	if err != nil {
		return "", err
	}
	if !now.Before(read.SignedInAt.Add(superuserSession)) {
		return "", tokenExpired()
	}
	return e.SignSuperuser(superuser.ProxyRecord(), read.SignedInAt, now)
}

// SignSuperuser returns an access token that expires no later than the session.
func (e *Engine) SignSuperuser(record *core.Record, signedInAt, now time.Time) (string, error) {
	ends := now.Add(superuserLife)
	if last := signedInAt.Add(superuserSession); last.Before(ends) {
		ends = last
	}
	superuser := collections.AsSuperuser(record)
	return e.signer.Sign(superuserToken(superuser, AccessToken, signedInAt, ends, now), superuserAccount(superuser))
}

func superuserToken(superuser *collections.Superuser, kind string, signedInAt, ends, now time.Time) TokenClaims {
	return TokenClaims{
		Kind: kind, Collection: superuser.Collection().Id, Holder: superuser.Id, SignedInAt: signedInAt, IssuedAt: now, ExpiresAt: ends,
	}
}

func superuserAccount(superuser *collections.Superuser) Account {
	return account(superuser.TokenKey(), superuser.Collection(), superuserLife)
}

// superuserOfToken returns the superuser of a token of the given kind. It refuses with token_invalid or token_expired.
func (e *Engine) superuserOfToken(app core.App, token, kind string, now time.Time) (superuser *collections.Superuser, read TokenClaims, err error) {
	superusers, err := app.FindCachedCollectionByNameOrId(core.CollectionNameSuperusers)
	if err != nil {
		return nil, read, err
	}
	read, err = e.signer.Check(token, kind, now, func(t TokenClaims) (Account, error) {
		if t.Collection != superusers.Id || t.SignedInAt.IsZero() {
			return Account{}, errOtherCollection
		}
		if superuser, err = collections.FindSuperuser(app, t.Holder); collections.IsNotFound(err) {
			return Account{}, errOtherCollection
		} else if err != nil {
			return Account{}, err
		}
		return superuserAccount(superuser), nil
	})
	switch {
	case errors.Is(err, ErrExpired):
		return nil, read, tokenExpired()
	case errors.Is(err, ErrInvalid), errors.Is(err, errOtherCollection):
		return nil, read, tokenInvalid()
	}
	return superuser, read, err
}

// SuperuserTokenExpiry returns the expiry of a superuser's access token.
func (e *Engine) SuperuserTokenExpiry(app core.App, token string, now time.Time) (time.Time, error) {
	_, read, err := e.superuserOfToken(app, token, AccessToken, now)
	return read.ExpiresAt, err
}

// Holder returns the user or superuser record of an access token, for PocketBase's own endpoints. It refuses as [Engine.AuthenticatePassively] does.
func (e *Engine) Holder(app core.App, token string, now time.Time) (*core.Record, error) {
	superuser, read, err := e.superuserOfToken(app, token, AccessToken, now)
	switch {
	case err == nil && now.Before(read.SignedInAt.Add(superuserSession)):
		return superuser.ProxyRecord(), nil
	case err == nil:
		return nil, tokenExpired()
	}
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return nil, err
	}
	caller, err := e.AuthenticatePassively(app, token, now)
	if err != nil {
		return nil, err
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	return user.ProxyRecord(), nil
}

// UnlockSuperuser ends the lockout of an address, even if it has no account.
func (e *Engine) UnlockSuperuser(app core.App, address string, by audit.Actor, now time.Time) error {
	a, _, err := e.superuserAttempt(app, address, by.Origin, now)
	if err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := a.clearFailures(tx); err != nil {
			return err
		}
		entry := a.entry(audit.Unlock)
		entry.Actor = by
		return audit.Append(tx, entry, now)
	})
}

// ResetSuperuserFactor gives a superuser a new second factor, or removes it if none is set, and ends every session and lockout. It returns the
// setup for an authenticator app, empty if none is set.
func (e *Engine) ResetSuperuserFactor(app core.App, address string, none bool, by audit.Actor, now time.Time) (setup Setup, err error) {
	a, superuser, err := e.superuserAttempt(app, address, by.Origin, now)
	if err != nil {
		return Setup{}, err
	}
	if superuser == nil {
		return Setup{}, fault.Missing()
	}
	event := audit.TwoFactorDisable
	if !none {
		var random [secretBytes]byte
		_, _ = rand.Read(random[:]) // never fails
		event, setup.Secret = audit.TwoFactorEnable, base32.StdEncoding.EncodeToString(random[:])
		setup.ProvisioningURI = e.provisioningURI(superuser.Email(), setup.Secret)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if superuser, err = collections.FindSuperuser(tx, superuser.Id); err != nil {
			return err
		}
		superuser.SetTwoFactor(setup.Secret)
		superuser.RefreshTokenKey()
		if err := tx.Save(superuser); err != nil {
			return err
		}
		entry := a.entry(event)
		entry.Actor = by
		return errors.Join(a.clearFailures(tx), audit.Append(tx, entry, now))
	})
	return setup, err
}
