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

// Superusers of the dashboard are no users, but meet the same rules at their door: the lock, the places for hashing, the second factor, the
// trail. Source: docs/decisions/authentication.md, "Superusers".
const (
	superuserLife    = time.Hour      // of a token, as PocketBase's SDK renews it
	superuserSession = 12 * time.Hour // from the sign-in on, however often it is renewed
	halfLife         = 5 * time.Minute
)

// SuperuserStep is how far a sign-in to the dashboard got: Record is signed in, or Half says that the password was right and a code is to come.
type SuperuserStep struct {
	Record *core.Record
	Half   string
}

// SuperuserPassword is the first step: it refuses with account_locked, authentication_failed, or two_factor_setup_required for an account
// that must have a second factor and has none. With a code it is both steps.
func (e *Engine) SuperuserPassword(ctx context.Context, app core.App, address, password, code string, from audit.Origin, now time.Time) (SuperuserStep, error) {
	ctx, done := waiting(ctx)
	defer done()
	a, superuser, err := e.superuserAttempt(app, address, from, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	if _, err := commitDecisionInTurn(ctx, e, app, a.refuseLocked); err != nil {
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
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (step SuperuserStep, refused, err error) {
		failures, refused, err := a.refuseLocked(tx)
		if refused != nil || err != nil {
			return step, refused, err
		}
		if proven && superuser != nil {
			superuser, err = unchangedSuperuser(tx, superuser)
		}
		switch {
		case err != nil:
			return step, nil, err
		case !proven || superuser == nil: // nobody, or somebody who has changed meanwhile
			refused, err = a.fail(tx, failures)
			return step, refused, err
		case code != "":
			return e.superuserCode(tx, a, superuser, failures, code)
		case superuser.TwoFactorEnabled():
			step.Half, err = e.signer.Sign(superuserToken(superuser, SecondFactorToken, now, now.Add(halfLife), now), superuserAccount(superuser))
			return step, nil, errors.Join(err, a.record(tx, audit.PasswordAccepted, audit.Success, ""))
		}
		return e.superuserWithoutFactor(tx, a, superuser)
	})
}

// superuserWithoutFactor lets in who has no second factor, unless everybody must have one.
func (e *Engine) superuserWithoutFactor(tx core.App, a attempt, superuser *collections.Superuser) (SuperuserStep, error, error) {
	if e.options.SuperuserTwoFactor {
		err := a.record(tx, audit.PasswordAccepted, audit.MinorFailure, "The account has no second factor.")
		return SuperuserStep{}, fault.New(fault.Forbidden, "two_factor_setup_required",
			"This account needs a second factor: run vigil superuser reset-2fa on the machine of the service."), err
	}
	return SuperuserStep{Record: superuser.ProxyRecord()}, nil, a.forgive(tx)
}

// SuperuserCode is the second step, with what the first gave. It refuses with authentication_failed or account_locked.
func (e *Engine) SuperuserCode(ctx context.Context, app core.App, half, code string, from audit.Origin, now time.Time) (SuperuserStep, error) {
	ctx, done := waiting(ctx)
	defer done()
	superuser, _, err := e.superuserOf(app, half, SecondFactorToken, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	a, superuser, err := e.superuserAttempt(app, superuser.Email(), from, now)
	if err != nil {
		return SuperuserStep{}, err
	}
	if superuser == nil { // gone meanwhile
		return SuperuserStep{}, tokenInvalid()
	}
	return commitDecisionInTurn(ctx, e, app, func(tx core.App) (step SuperuserStep, refused, err error) {
		failures, refused, err := a.refuseLocked(tx)
		if refused != nil || err != nil {
			return step, refused, err
		}
		superuser, err := unchangedSuperuser(tx, superuser)
		if superuser == nil || err != nil {
			return step, authenticationFailed(), err
		}
		return e.superuserCode(tx, a, superuser, failures, code)
	})
}

// superuserCode decides about a code of who has proven the password.
func (e *Engine) superuserCode(tx core.App, a attempt, superuser *collections.Superuser, failures collections.LoginFailure, code string,
) (step SuperuserStep, refused, err error) {
	if err := collections.Readable(superuser.ProxyRecord()); err != nil {
		return step, nil, err // a secret that cannot be opened is not one that is empty
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
	return SuperuserStep{Record: superuser.ProxyRecord()}, nil, a.forgive(tx)
}

// superuserAttempt is one try; the superuser is nil when nobody has the address.
func (e *Engine) superuserAttempt(app core.App, address string, from audit.Origin, now time.Time) (attempt, *collections.Superuser, error) {
	a := attempt{email: FoldEmail(address), dashboard: true, from: from, now: now}
	a.emailKey = e.superuserKey(a.email)
	superuser, err := ifThere(collections.FindSuperuserByEmail(app, a.email))
	if superuser != nil {
		a.superuserID = superuser.Id
	}
	return a, superuser, err
}

// superuserKey names the counter of an address; it is none of the users'.
func (e *Engine) superuserKey(email string) string { return e.sealer.LoginKey("superuser\x00" + email) }

// unchangedSuperuser reads an account again, now that nobody else writes: nil when it is gone or its password has changed meanwhile.
func unchangedSuperuser(tx core.App, before *collections.Superuser) (*collections.Superuser, error) {
	superuser, err := ifThere(collections.FindSuperuser(tx, before.Id))
	if err != nil || superuser == nil || superuser.TokenKey() != before.TokenKey() {
		return nil, err
	}
	return superuser, nil
}

// SuperuserSignedIn records a sign-in and gives its first token.
func (e *Engine) SuperuserSignedIn(app core.App, record *core.Record, from audit.Origin, now time.Time) (token string, err error) {
	err = audit.Append(app, audit.Entry{
		Event: audit.Login, Actor: audit.Superuser(record.Id, record.Email(), from), ResourceType: audit.ResourceSuperuser, ResourceID: record.Id,
	}, now)
	if err != nil {
		return "", err
	}
	return e.SignSuperuser(record, now, now)
}

// SuperuserRenewed gives the next token of a session, until the session ends; then it refuses with token_expired.
func (e *Engine) SuperuserRenewed(app core.App, token string, now time.Time) (string, error) {
	superuser, read, err := e.superuserOf(app, token, AccessToken, now)
	if err != nil {
		return "", err
	}
	if !now.Before(read.SignedInAt.Add(superuserSession)) {
		return "", tokenExpired()
	}
	return e.SignSuperuser(superuser.ProxyRecord(), read.SignedInAt, now)
}

// SignSuperuser makes a token of a session, which it does not outlive.
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

// superuserOf finds whose token of a kind it is. It refuses with token_invalid or token_expired.
func (e *Engine) superuserOf(app core.App, token, kind string, now time.Time) (superuser *collections.Superuser, read TokenClaims, err error) {
	superusers, err := app.FindCachedCollectionByNameOrId(core.CollectionNameSuperusers)
	if err != nil {
		return nil, read, err
	}
	read, err = e.signer.Check(token, kind, now, func(t TokenClaims) (Account, error) {
		if t.Collection != superusers.Id || t.SignedInAt.IsZero() {
			return Account{}, errNotOurs
		}
		if superuser, err = collections.FindSuperuser(app, t.Holder); collections.IsNotFound(err) {
			return Account{}, errNotOurs
		} else if err != nil {
			return Account{}, err
		}
		return superuserAccount(superuser), nil
	})
	switch {
	case errors.Is(err, ErrExpired):
		return nil, read, tokenExpired()
	case errors.Is(err, ErrInvalid), errors.Is(err, errNotOurs):
		return nil, read, tokenInvalid()
	}
	return superuser, read, err
}

// SuperuserUntil is when the access token of a superuser ends.
func (e *Engine) SuperuserUntil(app core.App, token string, now time.Time) (time.Time, error) {
	_, read, err := e.superuserOf(app, token, AccessToken, now)
	return read.ExpiresAt, err
}

// Holder is the account whose access token it is, of a user or a superuser, for PocketBase's own doors. It refuses like [Engine.Check].
func (e *Engine) Holder(app core.App, token string, now time.Time) (*core.Record, error) {
	superuser, read, err := e.superuserOf(app, token, AccessToken, now)
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
	caller, err := e.Check(app, token, now)
	if err != nil {
		return nil, err
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	return user.ProxyRecord(), nil
}

// UnlockSuperuser ends the lock of an address at once, whether it has an account or not.
func (e *Engine) UnlockSuperuser(app core.App, address string, by audit.Actor, now time.Time) error {
	a, _, err := e.superuserAttempt(app, address, by.From, now)
	if err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := a.forgive(tx); err != nil {
			return err
		}
		entry := a.entry(audit.Unlock)
		entry.Actor = by
		return audit.Append(tx, entry, now)
	})
}

// ResetSuperuserFactor gives a superuser a new second factor, or none, and ends every session and lock. It returns what an authenticator app
// needs; "" for none.
func (e *Engine) ResetSuperuserFactor(app core.App, address string, none bool, by audit.Actor, now time.Time) (setup Setup, err error) {
	a, superuser, err := e.superuserAttempt(app, address, by.From, now)
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
		return errors.Join(a.forgive(tx), audit.Append(tx, entry, now))
	})
	return setup, err
}
