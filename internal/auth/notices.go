package auth

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// tellOwner puts a notice about their account on a person's list and into their mailbox.
func tellOwner(tx core.App, user *collections.User, template notifications.Template, title, body string, parameters map[string]string, now time.Time) error {
	err := notifications.Notify(tx, user.Id, notifications.Notice{
		Channel: "alerts", Type: notifications.SystemHealth, Severity: "warning",
		Title: title, Body: body,
	}, now)
	if err != nil {
		return err
	}
	return notifications.Queue(tx, template, user, parameters, now)
}

func tellOfBackupCode(tx core.App, user *collections.User, left int, now time.Time) error {
	return tellOwner(tx, user, notifications.BackupCodeUsed, "A backup code was used",
		fmt.Sprintf("A backup code was used to prove your second factor. Unused codes left: %d.", left), map[string]string{"left": strconv.Itoa(left)}, now)
}

func tellOfReuse(tx core.App, user *collections.User, now time.Time) error {
	return tellOwner(tx, user, notifications.SessionsEnded, "A sign-in was ended",
		"A refresh token of yours was used twice, so the sign-in it came from was ended. Somebody may have copied it.", nil, now)
}

func tellOfRefusedPasskey(tx core.App, user *collections.User, now time.Time) error {
	return tellOwner(tx, user, notifications.PasskeyRefused, "A passkey was refused",
		"A passkey of yours was refused, because its count of uses went backwards. Somebody may have copied it: remove it and register another.", nil, now)
}

// tellOfLock queues word of a lock for the administrators. Whether the address has an account is looked up by the mailer, so that a lock
// takes the same work with and without one.
func (a attempt) tellOfLock(tx core.App, until time.Time) error {
	parameters := map[string]string{"until": input.FormatInstant(until), "account": "account"}
	if a.dashboard {
		parameters["account"] = "dashboard account"
	}
	return notifications.QueueUnresolved(tx, notifications.AccountLocked, a.email, parameters, a.now)
}

// resolveLock tells the administrators when the locked address has an account.
func resolveLock(tx core.App, mail *collections.Mail, now time.Time) error {
	parameters := mail.Parameters()
	find := func() error { _, err := collections.FindUserByEmail(tx, mail.Recipient()); return err }
	if parameters["account"] != "account" {
		find = func() error {
			_, err := collections.FindSuperuserByEmail(tx, mail.Recipient())
			return err
		}
	}
	switch err := find(); {
	case collections.Missing(err):
		return nil
	case err != nil:
		return err
	}
	return tellAdministrators(tx, mail.Recipient(), parameters, now)
}

// tellAdministrators names the locked account in the app; the mail does not. Source: docs/decisions/authentication.md, "Administrator notice and unlock".
func tellAdministrators(tx core.App, address string, parameters map[string]string, now time.Time) error {
	return notifications.TellAdministrators(tx, notifications.Notice{
		Channel: "alerts", Type: notifications.SystemHealth, Severity: "warning",
		Title: "An account was locked",
		Body:  fmt.Sprintf("The %s %s was locked until %s after repeated failed logins.", parameters["account"], address, parameters["until"]),
	}, notifications.AccountLocked, now)
}
