package auth

import (
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
)

// stepLife is how long somebody whose password was right has for the second factor.
const stepLife = 5 * time.Minute

// factors are the second factors a person can show.
type factors struct {
	totp        bool
	backupCodes int
	passkeys    bool
}

// any reports whether signing in with the password takes a second factor.
func (f factors) any() bool { return f.totp || f.passkeys }

// mayHavePasskeys reports whether the user's role has passkeys at all: one that was registered before a change of role is no second factor.
func mayHavePasskeys(user *collections.User) bool {
	return access.Reach(access.Role(user.Role()), access.UsePasskeys) != access.None
}

func factorsOf(app core.App, user *collections.User) (f factors, err error) {
	if f.totp = user.TwoFactorEnabled(); f.totp {
		if f.backupCodes, err = collections.BackupCodesLeft(app, user.Id); err != nil {
			return f, err
		}
	}
	f.passkeys, err = hasPasskeys(app, user)
	return f, err
}

func hasPasskeys(app core.App, user *collections.User) (bool, error) {
	if !mayHavePasskeys(user) {
		return false, nil
	}
	have, err := collections.HavePasskeys(app, user.Id)
	return have[user.Id], err
}

// hasSecondFactor reports whether a user has any second factor.
func hasSecondFactor(app core.App, user *collections.User) (bool, error) {
	if user.TwoFactorEnabled() {
		return true, nil
	}
	return hasPasskeys(app, user)
}

// methods are the second factors that sign-in takes from this person here.
func (e *Engine) methods(f factors) []string {
	list := []string{}
	if f.totp {
		list = append(list, "totp")
	}
	if f.backupCodes > 0 {
		list = append(list, "backup_code")
	}
	if f.passkeys && e.passkeys != nil {
		list = append(list, "passkey")
	}
	return list
}

// Temporary tokens stand for a password that was right: 256 random bits, of which a hash is stored. They work once, and end with the user's
// token key. Source: docs/decisions/authentication.md, "Passkeys".
const stepPrefix = "st_"

var stepFormat = regexp.MustCompile(`^` + stepPrefix + `[A-Za-z0-9_-]{43}$`)

// stepKey binds a temporary token to the user's token key.
func (e *Engine) stepKey(user *collections.User) string {
	return e.sealer.LoginKey("step\x00" + user.TokenKey())
}

// askSecondFactor refuses a sign-in whose password was right, with what the second step needs.
func (e *Engine) askSecondFactor(tx core.App, user *collections.User, f factors, now time.Time) (refused, err error) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token := stepPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	step := collections.SignInStep{UserID: user.Id, KeyHash: e.stepKey(user)}
	if err := collections.AddSignInStep(tx, randomHash(token), step, now, now.Add(stepLife)); err != nil {
		return nil, err
	}
	return totpRequired().With("temporary_token", token).With("methods", e.methods(f)), nil
}
