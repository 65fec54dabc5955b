package audit

import (
	"crypto/sha256"

	"github.com/vigilhealth/vigil/collections"
)

// UnkeyedHash is the hash of a row as versions before the key made it, and as everybody can.
func UnkeyedHash(previous string, row collections.AuditRow) string {
	return rowHash(sha256.New(), previous, row)
}
