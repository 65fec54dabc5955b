package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// aboutPasskey is an entry about a user that names which passkey.
func aboutPasskey(user *collections.User, p *collections.Passkey, event audit.Event, by audit.Actor) audit.Entry {
	entry := about(user, event, by)
	entry.Changes = audit.Changes{"passkey": {New: p.Number()}}
	return entry
}

// PasskeyName is another name for a passkey.
type PasskeyName struct {
	Name input.String `json:"name"`
}

// RenamePasskey gives a passkey of the caller's another name.
func (e *Engine) RenamePasskey(app core.App, caller Caller, id string, body PasskeyName, from audit.Origin, now time.Time) (renamed *collections.Passkey, err error) {
	checks := input.NewChecks()
	name := checks.Text("name", body.Name, input.Required(100).Filled())
	if err := checks.Err(); err != nil {
		return nil, err
	}
	err = e.changePasskey(app, caller, id, func(tx core.App, user *collections.User, p *collections.Passkey) error {
		renamed = p
		entry := aboutPasskey(user, p, audit.PasskeyRename, caller.Actor(from))
		entry.Changes["name"] = audit.Change{Old: phi.Text(p.Name()), New: phi.Text(name)}
		if err := collections.RenamePasskey(tx, p, name); err != nil {
			return err
		}
		return audit.Append(tx, entry, now)
	})
	return renamed, err
}

// RemovePasskey takes a passkey of the caller's away, who has to be fresh or to prove the password. The last second factor ends every session
// when it goes, as switching off the authenticator app does. Source: docs/decisions/authentication.md, "Passkeys".
func (e *Engine) RemovePasskey(ctx context.Context, app core.App, caller Caller, id string, proof PasswordProof, from audit.Origin, now time.Time) error {
	if err := e.proveFresh(ctx, app, caller, proof, from, now); err != nil {
		return err
	}
	return e.changePasskey(app, caller, id, func(tx core.App, user *collections.User, p *collections.Passkey) error {
		if err := removePasskey(tx, user, p, caller.Actor(from), now); err != nil {
			return err
		}
		if left, err := hasSecondFactor(tx, user); err != nil || left {
			return err
		}
		_, err := RevokeAll(tx, user.Id, becauseTwoFactor)
		return err
	})
}

// changePasskey is change for one of the caller's passkeys, which may not exist.
func (e *Engine) changePasskey(app core.App, caller Caller, id string, apply func(tx core.App, user *collections.User, p *collections.Passkey) error) error {
	return e.change(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		p, err := collections.FindOwnPasskey(tx, user.Id, id)
		if collections.Missing(err) {
			return fault.Missing(), nil
		}
		if err != nil {
			return nil, err
		}
		return nil, apply(tx, user, p)
	})
}

func removePasskey(tx core.App, user *collections.User, p *collections.Passkey, by audit.Actor, now time.Time) error {
	entry := aboutPasskey(user, p, audit.PasskeyRemove, by)
	entry.Changes["name"] = audit.Change{Old: phi.Text(p.Name())}
	if err := collections.RemovePasskey(tx, p); err != nil {
		return err
	}
	if err := notifications.Queue(tx, notifications.PasskeyRemoved, user, nil, now); err != nil {
		return err
	}
	return audit.Append(tx, entry, now)
}

// removePasskeys is an administrator's: all of them.
func removePasskeys(tx core.App, user *collections.User, by audit.Actor, now time.Time) error {
	list, err := collections.PasskeysOf(tx, user.Id)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := removePasskey(tx, user, p, by, now); err != nil {
			return err
		}
	}
	return nil
}
