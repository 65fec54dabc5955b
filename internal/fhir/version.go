package fhir

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// The systems of identifiers and codes.
const (
	userSystem       = "urn:rpm:user"
	npiSystem        = "http://hl7.org/fhir/sid/us-npi"
	alertTypeSystem  = "urn:rpm:alert-type"
	alertLevelSystem = "urn:rpm:alert-level"
)

// hashVersioned is a resource without a stored version number. Its version id is a hash of its content.
type hashVersioned interface{ metaField() *meta }

// withVersion returns a resource with a version id that changes whenever its content changes.
func withVersion(r hashVersioned, updatedAt time.Time) Resource {
	resource := Resource{content: r}
	encoded, err := resource.Encode()
	if err != nil {
		return Resource{err: err}
	}
	const length = 8 // bytes, enough to distinguish the versions of one resource
	sum := sha256.Sum256(encoded)
	m := r.metaField()
	m.VersionID, m.LastUpdated = hex.EncodeToString(sum[:length]), validate.FormatInstant(updatedAt)
	return resource
}
