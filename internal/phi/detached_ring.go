package phi

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// DetachedRing returns a ring of one key, derived from the index key and a secret that only the caller of the API has. Opening its values requires both.
// Against an attacker with the index key it is only as strong as the secret, so also seal such a value with the [KeyRing].
func (s *Sealer) DetachedRing(secret string) (*KeyRing, error) {
	key, err := hkdf.Key(sha256.New, s.root.secret[:], []byte(secret), "vigil v1 key: held with another", KeySize)
	if err != nil {
		return nil, fmt.Errorf("phi: deriving the key of a detached ring: %w", err)
	}
	return NewKeyRing(Key{ID: "held", Secret: [KeySize]byte(key)})
}
