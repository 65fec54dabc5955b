package auth

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
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
	return authz.Reach(authz.Role(user.Role()), authz.UsePasskeys) != authz.None
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
	have, err := collections.UsersWithPasskeys(app, user.Id)
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
	token := stepPrefix + Random()
	step := collections.SignInStep{UserID: user.Id, KeyHash: e.stepKey(user)}
	if err := collections.AddSignInStep(tx, Hash(token), step, now, now.Add(stepLife)); err != nil {
		return nil, err
	}
	return totpRequired().With("temporary_token", token).With("methods", e.methods(f)), nil
}

// secondFactor is what came of checking one.
type secondFactor struct {
	proven     bool
	step       int64 // the time step that was matched, for a time-based code
	backupCode bool
	codesLeft  int // unused backup codes after this one
}

// checkSecondFactor checks a code of either kind, told apart by its form, and uses up a backup code. The matched
// time step is for the caller to store. Source: docs/decisions/authentication.md, "Backup codes".
func (e *Engine) checkSecondFactor(tx core.App, user *collections.User, code string, now time.Time) (f secondFactor, err error) {
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return f, err // a secret that cannot be opened is not one that is empty
	}
	if totpFormat.MatchString(code) {
		f.step, f.proven = matchTOTP(user.TOTPSecret(), code, user.TOTPLastStep(), now)
		return f, nil
	}
	hash := e.sealer.BackupCodeHash(user.Id, strings.ToLower(strings.ReplaceAll(code, "-", ""))) // without dashes and case
	f.proven, f.codesLeft, err = collections.UseBackupCode(tx, user.Id, hash, now)
	f.backupCode = f.proven
	return f, err
}

// RFC 6238 as authenticator apps have it. Source: docs/decisions/authentication.md, "TOTP parameters".
const (
	totpPeriod = 30 // seconds
	totpSkew   = 1  // steps before and after
)

var (
	totpOptions = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}
	totpFormat  = regexp.MustCompile(`^[0-9]{6}$`)
)

// matchTOTP finds the time step whose code this is, among those near now and after the last one accepted (RFC 6238,
// section 5.2: a code works once). The secret is base32; an absent or damaged one has no codes.
func matchTOTP(secret, code string, lastStep int64, now time.Time) (step int64, ok bool) {
	if secret == "" {
		return 0, false
	}
	current := now.Unix() / totpPeriod
	for step := max(current-totpSkew, lastStep+1); step <= current+totpSkew; step++ {
		if valid, err := hotp.ValidateCustom(code, uint64(step), secret, totpOptions); valid && err == nil { //nolint:gosec // a step is positive since 1970
			return step, true
		}
	}
	return 0, false
}

// Ten codes of 50 random bits, written in Crockford's base 32, which has no letters that look like digits.
// Source: docs/decisions/authentication.md, "Backup codes".
const (
	backupCodeCount  = 10
	backupCodeLength = 10
	crockford        = "0123456789abcdefghjkmnpqrstvwxyz"
)

// newBackupCodes makes the codes, as they are shown once, and what is stored of them.
func (e *Engine) newBackupCodes(user *collections.User) (codes, hashes []string) {
	for range backupCodeCount {
		var random [backupCodeLength]byte
		_, _ = rand.Read(random[:]) // never fails
		for i, b := range random {
			random[i] = crockford[b%byte(len(crockford))] // 256 is a multiple of 32: no letter is likelier
		}
		code := string(random[:])
		codes = append(codes, code[:5]+"-"+code[5:])
		hashes = append(hashes, e.sealer.BackupCodeHash(user.Id, code))
	}
	return codes, hashes
}
