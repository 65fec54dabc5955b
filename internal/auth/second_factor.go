package auth

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

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
	hash := e.sealer.BackupCodeHash(user.Id, normaliseBackupCode(code))
	f.proven, f.codesLeft, err = collections.UseBackupCode(tx, user.Id, hash, now)
	f.backupCode = f.proven
	return f, err
}
