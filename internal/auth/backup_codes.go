package auth

import (
	"crypto/rand"
	"strings"

	"github.com/vigilhealth/vigil/collections"
)

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

// normaliseBackupCode takes out dashes and case.
func normaliseBackupCode(code string) string {
	return strings.ToLower(strings.ReplaceAll(code, "-", ""))
}
