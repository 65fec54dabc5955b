package auth

import (
	"regexp"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

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
