package phi

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// HeldWith returns a ring of one key that takes the index key and a secret that somebody else holds: what it seals opens neither to who has
// all of ours nor to who has only theirs. It is no better than the secret against who has ours, so such a value is sealed by the [KeyRing], too.
func (s *Sealer) HeldWith(secret string) (*KeyRing, error) {
	key, err := hkdf.Key(sha256.New, s.root.secret[:], []byte(secret), "vigil v1 key: held with another", KeySize)
	if err != nil {
		return nil, fmt.Errorf("phi: deriving a key that is held with another: %w", err)
	}
	return NewKeyRing(Key{ID: "held", Secret: [KeySize]byte(key)})
}
