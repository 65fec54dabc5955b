package phi

import (
	"crypto/hkdf"
	"crypto/sha256"
	"maps"
	"slices"
)

// derivation names a secret that was derived from a key of the ring.
type derivation struct{ keyID, label string }

// Derive returns 32 bytes that depend on one key of the ring and on a label, for what must end with that key:
// signatures, for example, are made under the [KeyRing.PrimaryKeyID] and checked under the key they name. !ok means
// that the ring has no such key. Each use has a label of its own, which must be a constant of the code: what is
// derived is kept, so that a second call costs a look-up.
func (r *KeyRing) Derive(keyID, label string) (secret []byte, ok bool) {
	root, ok := r.secrets[keyID]
	if !ok {
		return nil, false
	}
	name := derivation{keyID, label}
	if kept, found := r.derived.Load(name); found {
		return slices.Clone(kept.([]byte)), true
	}
	secret, err := hkdf.Key(sha256.New, root[:], nil, "vigil v1 ring: "+label, KeySize)
	if err != nil { // only for more than 255 blocks, or for short keys where FIPS 140 is enforced
		return nil, false
	}
	r.derived.Store(name, secret)
	return slices.Clone(secret), true
}

// What the check value of a key says, and where it is bound to.
const (
	checkText    = "vigil"
	checkPurpose = "ring_key"
)

// CheckValue is a value that only the key of that id opens: by it a key is told from another one of the same id.
func (r *KeyRing) CheckValue(keyID string) (string, error) {
	if !r.Has(keyID) {
		return "", ErrUnknownKey
	}
	return r.sealUnder(keyID, checkText, checkPurpose, keyID)
}

// Holds reports whether the ring has the very key that made a check value, bytes and all.
func (r *KeyRing) Holds(keyID, checkValue string) bool {
	id, sealed := KeyID(checkValue)
	text, err := r.Open(checkValue, checkPurpose, keyID)
	return sealed && id == keyID && err == nil && text == checkText
}

// Has reports whether the ring has a key of that id.
func (r *KeyRing) Has(keyID string) bool { return r.ciphers[keyID] != nil }

// KeyIDs are the ids of all keys, the one that seals first.
func (r *KeyRing) KeyIDs() []string {
	ids := []string{r.primary}
	for _, id := range slices.Sorted(maps.Keys(r.ciphers)) {
		if id != r.primary {
			ids = append(ids, id)
		}
	}
	return ids
}
