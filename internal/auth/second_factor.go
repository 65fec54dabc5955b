package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
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
	token := temporaryTokenPrefix + NewSecret()
	step := collections.SignInStep{UserID: user.Id, KeyHash: e.temporaryTokenKey(user)}
	if err := collections.AddSignInStep(tx, HashSecret(token), step, now, now.Add(temporaryTokenLife)); err != nil {
		return nil, err
	}
	return totpRequired().With("temporary_token", token).With("methods", e.secondFactorMethods(f)), nil
}

// secondFactor is the result of checking a code.
type secondFactor struct {
	proven     bool
	timeStep   int64 // the matched time step of a TOTP code
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
		f.timeStep, f.proven = matchTOTP(user.TOTPSecret(), code, user.TOTPLastStep(), now)
		return f, nil
	}
	hash := e.sealer.BackupCodeHash(user.Id, strings.ToLower(code)) // case does not matter
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

// readCode reads a code of the authenticator app or a backup code; either field takes either. Source: docs/decisions/authentication.md, "Backup
// codes".
func readCode(checks *validate.Checks, totp, backup validate.String) string {
	validate.NotNull(checks, "totp_code", totp)
	validate.NotNull(checks, "backup_code", backup)
	code := checks.Text("totp_code", compactCode(totp), validate.Optional(11).Identifier())
	if other := checks.Text("backup_code", compactCode(backup), validate.Optional(11).Identifier()); code == "" {
		code = other
	}
	return code
}

// compactCode returns a code without the spaces and dashes that apps show in it.
func compactCode(code validate.String) validate.String {
	if !code.Given() {
		return code
	}
	compact := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return r
	}, code.Value)
	if compact == "" { // no code, and not a missing one
		return code
	}
	return validate.Of(compact)
}

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

// PasswordProof is the caller's password, sent again when the sign-in is no longer fresh.
type PasswordProof struct {
	Password validate.String `json:"password"`
}

// isMissing reports whether the request has no password.
func (p PasswordProof) isMissing() bool {
	return !p.Password.Sent() || p.Password.Null() || p.Password.Given() && p.Password.Value == ""
}

// RequireReauthentication passes if the caller signed in recently or sends the right password, as before a new administrator is made.
func (e *Engine) RequireReauthentication(ctx context.Context, app core.App, caller Caller, currentPassword validate.String, from audit.Origin, now time.Time) error {
	return e.requireReauthentication(ctx, app, caller, PasswordProof{currentPassword}, from, now)
}

// requireReauthentication passes if the caller signed in recently or sends the current password. A
// password that is sent must be right in either case. A stolen access token alone must not add or
// remove a second factor, because that would lock the owner out. A wrong password counts both as a
// failed sign-in and as a wrong proof. Source: docs/decisions/authentication.md, "Fresh sign-in".
func (e *Engine) requireReauthentication(ctx context.Context, app core.App, caller Caller, proof PasswordProof, from audit.Origin, now time.Time) error {
	if proof.isMissing() {
		fresh, err := e.isFresh(app, caller, now)
		if err != nil || fresh {
			return err
		}
		return fault.New(fault.Forbidden, "reauthentication_required", "Enter your password again to do this.")
	}
	checks := validate.NewChecks()
	password := checks.Secret("password", proof.Password, 0)
	if err := checks.Err(); err != nil {
		return err
	}
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return err
	}
	a := e.newAttempt(user, from, now)
	if _, err := commitDecision(app, a.rejectIfLocked); err != nil {
		return err
	}
	wait, done := withQueueTimeout(ctx)
	defer done()
	right, err := e.matches(wait, user.PasswordHash(), password)
	if err != nil {
		return err
	}
	_, err = commitDecision(app, func(tx core.App) (struct{}, error, error) {
		refused, err := e.decideReauthentication(tx, a, right)
		return struct{}{}, refused, err
	})
	return err
}

// isFresh reports whether the caller's session began within the configured time; a revoked session is not fresh.
func (e *Engine) isFresh(app core.App, caller Caller, now time.Time) (bool, error) {
	if caller.Family == "" || e.options.FreshSignIn <= 0 {
		return false, nil
	}
	started, err := collections.RefreshFamilyStartedAt(app, caller.RecordID, caller.Family)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && now.Sub(started) <= e.options.FreshSignIn, err
}

// decideReauthentication records the outcome of a password check for a signed-in caller and returns the refusal, if any.
func (e *Engine) decideReauthentication(tx core.App, a attempt, right bool) (refused, err error) {
	failures, refused, err := a.rejectIfLocked(tx)
	if refused != nil || err != nil {
		return refused, err
	}
	user, err := a.account(tx)
	if err != nil {
		return nil, err
	}
	if user == nil { // the password changed after the check
		return tokenInvalid(), nil
	}
	wrong := authenticationFailed()
	refused, err = e.countProof(tx, user.Id, right, wrong, a.now)
	if refused != wrong || err != nil { //nolint:errorlint // identity, not kind: the value passed in
		return refused, err
	}
	return a.fail(tx, failures)
}

// newAttempt returns a sign-in attempt for a known account.
func (e *Engine) newAttempt(user *collections.User, from audit.Origin, now time.Time) attempt {
	email := FoldEmail(user.Email())
	return attempt{email: email, emailKey: e.sealer.LoginKey(email), user: user, from: from, now: now}
}

// A caller proves the password or second factor again before either changes. After five wrong proofs within 15 minutes the caller is refused
// until those 15 minutes have passed, so a stolen access token cannot be used for guessing. Source: docs/decisions/authentication.md, "Password
// policy errors".
const (
	maxWrongProofs = 5
	proofWindow    = 15 * time.Minute
)

// proofKey returns the counter key of a user. The NUL byte keeps it apart from every e-mail address.
func (e *Engine) proofKey(userID string) string { return e.sealer.LoginKey("proof\x00" + userID) }

// failedProofs returns the count of the current window. LockedUntil holds the end of the window.
func (e *Engine) failedProofs(tx core.App, userID string, now time.Time) (collections.LoginFailure, error) {
	wrong, err := collections.LockLoginFailure(tx, e.proofKey(userID))
	if err != nil || !now.Before(wrong.LockedUntil) {
		return collections.LoginFailure{LockedUntil: now.Add(proofWindow)}, err
	}
	return wrong, nil
}

// countProof records the result of one proof inside the transaction that decides about it, so concurrent requests cannot exceed five wrong
// proofs. A caller at the limit is refused even with a right proof.
func (e *Engine) countProof(tx core.App, userID string, right bool, wrongProof error, now time.Time) (refused, err error) {
	wrong, err := e.failedProofs(tx, userID, now)
	switch {
	case err != nil:
		return nil, err
	case wrong.Failures >= maxWrongProofs:
		return throttled(wrong.LockedUntil.Sub(now)), nil
	case right:
		return nil, nil
	}
	wrong.Failures++
	return wrongProof, collections.PutLoginFailure(tx, e.proofKey(userID), wrong, now)
}

func throttled(wait time.Duration) error {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	return fault.New(fault.Throttled, "throttled", fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds)).After(wait)
}

// verifyPassword checks the caller's password again and returns the user record it was checked against. A wrong password is a validation fault
// of the named field.
func (e *Engine) verifyPassword(ctx context.Context, app core.App, caller Caller, field, password string, now time.Time) (*collections.User, error) {
	user, err := collections.FindUser(app, caller.RecordID)
	if err != nil {
		return nil, err
	}
	right, err := e.matches(ctx, user.PasswordHash(), password)
	if err != nil {
		return nil, err
	}
	return commitDecision(app, func(tx core.App) (*collections.User, error, error) {
		refused, err := e.countProof(tx, caller.RecordID, right, fault.Field(field, "The password is wrong."), now)
		return user, refused, err
	})
}
