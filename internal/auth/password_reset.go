package auth

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Lifetimes of set-password links, and the hourly limit of mails. Source: docs/decisions/authentication.md, "Registration" and "Password reset
// confirm".
const (
	welcomeLife      = 24 * time.Hour
	resetLife        = time.Hour
	maxResetsPerHour = 3
)

// Purposes of set-password links.
const (
	purposeWelcome = "welcome"
	purposeReset   = "reset"
)

const reasonPasswordReset = "password_reset"

// Invite creates an account with a random password and returns the one-time link with which its owner sets one.
func Invite(app core.App, a NewAccount, resetURL string, by audit.Actor, now time.Time) (link string, err error) {
	a.Password = "Aa1-" + NewSecret() // satisfies the policy; never shown
	a.MustChangePassword = true
	err = app.RunInTransaction(func(tx core.App) error {
		user, err := CreateAccount(tx, a, by, now)
		if err != nil {
			return err
		}
		link, err = addResetToken(tx, user, resetURL, purposeWelcome, welcomeLife, now)
		return err
	})
	return link, err
}

// addResetToken creates a one-time link and invalidates the user's earlier links.
func addResetToken(tx core.App, user *collections.User, resetURL, purpose string, life time.Duration, now time.Time) (link string, err error) {
	token := NewSecret()
	if err := collections.AddResetToken(tx, user.Id, HashSecret(token), purpose, now, now.Add(life)); err != nil {
		return "", err
	}
	address, err := url.Parse(resetURL)
	if err != nil {
		return "", fmt.Errorf("reset address: %w", err)
	}
	query := address.Query()
	query.Set("token", token)
	address.RawQuery = query.Encode()
	return address.String(), nil
}

// ResetRequestBody is a request for a set-password link.
type ResetRequestBody struct {
	Email validate.String `json:"email"`
}

// RequestReset queues a mail with a set-password link to the address, if it has an account. It does the same work for every address: the mailer
// looks up the account. Source: docs/decisions/authentication.md, "Password reset confirm".
func (e *Engine) RequestReset(app core.App, body ResetRequestBody, from audit.Origin, now time.Time) error {
	checks := validate.NewChecks()
	email := FoldEmail(checks.Text("email", body.Email, validate.Required(254).LookupOnly()))
	if err := checks.Err(); err != nil {
		return err
	}
	user, err := nilIfMissing(collections.FindUserByEmail(app, email))
	if err != nil {
		return err
	}
	a := attempt{emailKey: e.sealer.LoginKey(email), user: user, from: from, now: now}
	return app.RunInTransaction(func(tx core.App) error { return queueReset(tx, email, a.entry(audit.PasswordResetRequest), now) })
}

func queueReset(tx core.App, email string, entry audit.Entry, now time.Time) error {
	if err := audit.Append(tx, entry, now); err != nil {
		return err
	}
	return notifications.QueueUnresolvedMail(tx, notifications.PasswordReset, email, nil, now)
}

// ResolveMail looks up the account of a queued mail and fills in the mail, or drops it.
func (e *Engine) ResolveMail(tx core.App, mail *collections.Mail, now time.Time) (send bool, err error) {
	if notifications.Template(mail.Template()) == notifications.AccountLocked {
		return false, resolveLock(tx, mail, now)
	}
	user, err := nilIfMissing(collections.FindUserByEmail(tx, mail.Recipient()))
	if err != nil || user == nil {
		return false, err
	}
	return e.fillReset(tx, mail, user, now)
}

func (e *Engine) fillReset(tx core.App, mail *collections.Mail, user *collections.User, now time.Time) (bool, error) {
	mailed, err := collections.CountMails(tx, user.Id, mail.Template(), now.Add(-time.Hour))
	if err != nil || mailed >= maxResetsPerHour {
		return false, err
	}
	if usable, err := isUsable(tx, user); err != nil || !usable {
		return false, err
	}
	if unconfirmed, err := isUnconfirmed(tx, user); err != nil || unconfirmed {
		return false, err
	}
	link, err := addResetToken(tx, user, e.options.ResetURL, purposeReset, resetLife, now)
	if err != nil {
		return false, err
	}
	mail.SetUser(user.Id)
	return true, mail.SetParameters(map[string]string{"link": link})
}

// ResetBody sets a new password with the token of a set-password link.
type ResetBody struct {
	Token              validate.String `json:"token"`
	NewPassword        validate.String `json:"new_password"`
	NewPasswordConfirm validate.String `json:"new_password_confirm"`
}

// ConfirmReset sets the password of the token's account. The token works once, and all sessions end. Source: docs/decisions/authentication.md,
// "Password reset confirm".
func (e *Engine) ConfirmReset(ctx context.Context, app core.App, body ResetBody, from audit.Origin, now time.Time) error {
	ctx, done := withQueueTimeout(ctx)
	defer done()
	checks := validate.NewChecks()
	token := checks.Secret("token", body.Token, 512)
	password := readNewPassword(checks, body.NewPassword, body.NewPasswordConfirm)
	if len(checks.Fields["token"]) > 0 {
		return checks.Err()
	}
	userID, err := collections.FindResetToken(app, HashSecret(token), now)
	if collections.IsNotFound(err) {
		if err := checks.Err(); err != nil {
			return err
		}
		return invalidResetToken()
	}
	if err != nil {
		return err
	}
	user, err := collections.FindUser(app, userID)
	if err != nil {
		return err
	}
	hash, err := e.hashNewPassword(ctx, app, checks, password, user)
	if err != nil {
		return err
	}
	return e.changeUser(app, userID, func(tx core.App, user *collections.User) (refused, err error) {
		if _, err := collections.UseResetToken(tx, HashSecret(token), now); collections.IsNotFound(err) {
			return invalidResetToken(), nil
		} else if err != nil {
			return nil, err
		}
		if err := collections.ClearLoginFailure(tx, e.sealer.LoginKey(FoldEmail(user.Email()))); err != nil {
			return nil, err
		}
		return nil, replacePassword(tx, user, hash, reasonPasswordReset, userEntry(user, audit.PasswordReset, callerOf(user).Actor(from)), now)
	})
}

func invalidResetToken() error {
	return fault.New(fault.Invalid, "invalid_reset_token", "The link is invalid, used or expired.")
}
