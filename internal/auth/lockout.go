package auth

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Source: docs/decisions/authentication.md, "Which response on the fifth failure".
const (
	maxFailures  = 5
	lockDuration = 30 * time.Minute
)

// isLocked reports whether an address with these failures is locked.
func isLocked(f collections.LoginFailure, now time.Time) bool { return now.Before(f.LockedUntil) }

// extendLock restarts the lockout, as any attempt on a locked address does.
func extendLock(f collections.LoginFailure, now time.Time) collections.LoginFailure {
	f.LockedUntil = now.Add(lockDuration)
	return f
}

// countFailure counts a failure on an address that is not locked. The fifth in a row locks it; after an expired lockout the count starts at one
// again.
func countFailure(f collections.LoginFailure, now time.Time) collections.LoginFailure {
	if !f.LockedUntil.IsZero() {
		f = collections.LoginFailure{}
	}
	f.Failures++
	if f.Failures >= maxFailures {
		f.LockedUntil = now.Add(lockDuration)
	}
	return f
}

// rejectIfLocked refuses an attempt on a locked address, even with right credentials, and restarts the lockout. It must be the first statement of
// the transaction. Without a refusal it returns the failures so far.
func (a attempt) rejectIfLocked(tx core.App) (failures collections.LoginFailure, refused, err error) {
	failures, err = collections.LockLoginFailure(tx, a.emailKey)
	if err != nil || !isLocked(failures, a.now) {
		return failures, nil, err
	}
	failures = extendLock(failures, a.now)
	if err := collections.PutLoginFailure(tx, a.emailKey, failures, a.now); err != nil {
		return failures, nil, err
	}
	if err := a.record(tx, audit.LoginFailed, audit.MinorFailure, "The account is locked."); err != nil {
		return failures, nil, err
	}
	return failures, accountLocked(failures.LockedUntil, a.now), nil
}

// fail counts a failure and refuses. The refusal is the same for every cause, including the failure that locks.
func (a attempt) fail(tx core.App, failures collections.LoginFailure) (refused, err error) {
	failures = countFailure(failures, a.now)
	if err := collections.PutLoginFailure(tx, a.emailKey, failures, a.now); err != nil {
		return nil, err
	}
	if err := a.record(tx, audit.LoginFailed, audit.MinorFailure, ""); err != nil {
		return nil, err
	}
	if isLocked(failures, a.now) {
		if err := a.record(tx, audit.Lockout, audit.SeriousFailure, ""); err != nil {
			return nil, err
		}
		if err := a.queueLockNotice(tx, failures.LockedUntil); err != nil {
			return nil, err
		}
	}
	return authenticationFailed(), nil
}

// clearFailures clears the failure count after a sign-in.
func (a attempt) clearFailures(tx core.App) error {
	return collections.ClearLoginFailure(tx, a.emailKey)
}

func authenticationFailed() error {
	return unauthenticated("authentication_failed", "Invalid credentials.")
}

func accountLocked(until, now time.Time) error {
	return fault.New(fault.Locked, "account_locked", "The account is locked after repeated failed logins.").
		With("locked_until", validate.FormatInstant(until)).After(until.Sub(now))
}

// notifyOwner adds a notification about the account to the user's inbox and queues a mail.
func notifyOwner(tx core.App, user *collections.User, template notifications.Template, title, body string, parameters map[string]string, now time.Time) error {
	err := notifications.Notify(tx, user.Id, notifications.Notice{
		Channel: "alerts", Type: notifications.SystemHealth, Severity: "warning",
		Title: title, Body: body,
	}, now)
	if err != nil {
		return err
	}
	return notifications.QueueMail(tx, template, user, parameters, now)
}

func notifyBackupCodeUsed(tx core.App, user *collections.User, left int, now time.Time) error {
	return notifyOwner(tx, user, notifications.BackupCodeUsed, "A backup code was used",
		fmt.Sprintf("A backup code was used to prove your second factor. Unused codes left: %d.", left), map[string]string{"left": strconv.Itoa(left)}, now)
}

func notifyTokenReuse(tx core.App, user *collections.User, now time.Time) error {
	return notifyOwner(tx, user, notifications.SessionsEnded, "A sign-in was ended",
		"A refresh token of yours was used twice, so the sign-in it came from was ended. It may have been copied.", nil, now)
}

func notifyPasskeyCloned(tx core.App, user *collections.User, now time.Time) error {
	return notifyOwner(tx, user, notifications.PasskeyRejected, "A passkey was refused",
		"A passkey of yours was refused, because its count of uses went backwards. It may have been copied: remove it and register another.", nil, now)
}

// queueLockNotice queues a lockout notice to the administrators. The mailer looks up whether the address has an account, so that a lockout costs
// the same with and without one.
func (a attempt) queueLockNotice(tx core.App, until time.Time) error {
	parameters := map[string]string{"until": validate.FormatInstant(until), "account": "account"}
	if a.dashboard {
		parameters["account"] = "dashboard account"
	}
	return notifications.QueueUnresolvedMail(tx, notifications.AccountLocked, a.email, parameters, a.now)
}

// resolveLock notifies the administrators if the locked address has an account. Source: docs/decisions/authentication.md, "Administrator notice
// and unlock".
func resolveLock(tx core.App, mail *collections.Mail, now time.Time) error {
	parameters := mail.Parameters()
	var err error
	if parameters["account"] == "account" {
		_, err = collections.FindUserByEmail(tx, mail.Recipient())
	} else {
		_, err = collections.FindSuperuserByEmail(tx, mail.Recipient())
	}
	switch {
	case collections.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	// The in-app notification names the locked account; the mail does not.
	return notifications.NotifyAdministrators(tx, notifications.Notice{
		Channel: "alerts", Type: notifications.SystemHealth, Severity: "warning",
		Title: "An account was locked",
		Body:  fmt.Sprintf("The %s %s was locked until %s after repeated failed logins.", parameters["account"], mail.Recipient(), parameters["until"]),
	}, notifications.AccountLocked, now)
}
