package audit

import (
	"crypto/sha256"

	"github.com/vigilhealth/vigil/collections"
)

// UnkeyedHash returns the plain hash of a row, as computed by versions without a key.
func UnkeyedHash(previous string, row collections.AuditRow) string {
	return rowHash(sha256.New(), previous, row)
}
