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

// temporaryTokenLife is the time between the right password and the second factor.
const temporaryTokenLife = 5 * time.Minute

// factors lists the second factors of a user.
type factors struct {
	totp        bool
	backupCodes int
	passkeys    bool
}

// any reports whether a password sign-in needs a second factor.
func (f factors) any() bool { return f.totp || f.passkeys }

// mayHavePasskeys reports whether the user's role may use passkeys. A passkey registered before a role change does not count as a second factor.
func mayHavePasskeys(user *collections.User) bool {
	return authz.ReachOf(authz.Role(user.Role()), authz.UsePasskeys) != authz.None
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

// secondFactorMethods returns the second factors that sign-in accepts from this user on this server.
func (e *Engine) secondFactorMethods(f factors) []string {
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

// Temporary tokens stand for a right password: 256 random bits, stored as a hash. Each works once and becomes invalid when the user's token key
// changes. Source: docs/decisions/authentication.md, "Passkeys".
const temporaryTokenPrefix = "st_"

var temporaryTokenFormat = regexp.MustCompile(`^` + temporaryTokenPrefix + `[A-Za-z0-9_-]{43}$`)

// temporaryTokenKey binds a temporary token to the user's token key.
func (e *Engine) temporaryTokenKey(user *collections.User) string {
	return e.sealer.LoginKey("step\x00" + user.TokenKey())
}

// requestSecondFactor refuses a sign-in with the right password and returns a temporary token and the accepted methods.
func (e *Engine) requestSecondFactor(tx core.App, user *collections.User, f factors, now time.Time) (refused, err error) {
	token := temporaryTokenPrefix + Random()
	step := collections.SignInStep{UserID: user.Id, KeyHash: e.temporaryTokenKey(user)}
	if err := collections.AddSignInStep(tx, Hash(token), step, now, now.Add(temporaryTokenLife)); err != nil {
		return nil, err
	}
	return totpRequired().With("temporary_token", token).With("methods", e.secondFactorMethods(f)), nil
}

// secondFactor is the result of checking a code.
type secondFactor struct {
	proven     bool
	step       int64 // the matched time step of a TOTP code
	backupCode bool
	codesLeft  int // unused backup codes after this one
}

// checkSecondFactor checks a TOTP or backup code, distinguished by format, and consumes a backup code. The caller stores the matched time step.
// Source: docs/decisions/authentication.md, "Backup codes".
func (e *Engine) checkSecondFactor(tx core.App, user *collections.User, code string, now time.Time) (f secondFactor, err error) {
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return f, err // a secret that cannot be decrypted must not pass as an empty one
	}
	if totpFormat.MatchString(code) {
		f.step, f.proven = matchTOTP(user.TOTPSecret(), code, user.TOTPLastStep(), now)
		return f, nil
	}
	hash := e.sealer.BackupCodeHash(user.Id, strings.ToLower(strings.ReplaceAll(code, "-", ""))) // dashes and case do not matter
	f.proven, f.codesLeft, err = collections.UseBackupCode(tx, user.Id, hash, now)
	f.backupCode = f.proven
	return f, err
}

// TOTP parameters (RFC 6238) that authenticator apps support. Source: docs/decisions/authentication.md, "TOTP parameters".
const (
	totpPeriod = 30 // seconds
	totpSkew   = 1  // steps before and after
)

var (
	totpOptions = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}
	totpFormat  = regexp.MustCompile(`^[0-9]{6}$`)
)

// matchTOTP returns the time step of the code: one near now and after the last accepted step, because a code works once (RFC 6238, section 5.2).
// The secret is base32; a missing or damaged secret matches no code.
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

// Ten codes of 50 random bits in Crockford's base 32, which avoids letters that look like digits. Source: docs/decisions/authentication.md,
// "Backup codes".
const (
	backupCodeCount  = 10
	backupCodeLength = 10
	crockford        = "0123456789abcdefghjkmnpqrstvwxyz"
)

// newBackupCodes returns new codes, which are shown once, and the hashes to store.
func (e *Engine) newBackupCodes(user *collections.User) (codes, hashes []string) {
	for range backupCodeCount {
		var random [backupCodeLength]byte
		_, _ = rand.Read(random[:]) // never fails
		for i, b := range random {
			random[i] = crockford[b%byte(len(crockford))] // 256 is a multiple of 32, so the distribution is uniform
		}
		code := string(random[:])
		codes = append(codes, code[:5]+"-"+code[5:])
		hashes = append(hashes, e.sealer.BackupCodeHash(user.Id, code))
	}
	return codes, hashes
}
