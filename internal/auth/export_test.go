package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
)

// What tests of the rules need to reach.
var (
	MatchTOTP   = matchTOTP
	Locked      = locked
	Relocked    = relocked
	FailedAgain = failedAgain
	DecoyHash   = decoyHash
	AccessKey   = accessKey

	CommonPasswords = commonPasswords
)

// HashAt sets the cost of hashing passwords.
func HashAt(users *core.Collection, cost int) {
	users.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField).Cost = cost
}

// LoginWhile is Login with something happening between the check of the password and the decision.
func (e *Engine) LoginWhile(ctx context.Context, app core.App, body LoginBody, from audit.Origin, now time.Time, meanwhile func()) error {
	a, err := e.readLogin(app, body, from, now)
	if err != nil {
		return err
	}
	proven, err := e.checkPassword(ctx, app, a)
	if err != nil {
		return err
	}
	meanwhile()
	_, err = settle(app, func(tx core.App) (Session, error, error) { return e.decideLogin(tx, a, proven) })
	return err
}
