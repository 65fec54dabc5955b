// Package phi protects health information: it seals single fields under a key ring, computes blind indexes for equality
// search of sealed values, and defines types that refuse to print.
//
// A sealed field is bound to its purpose and row, so a ciphertext copied to another row or column does not open. The
// first key of the ring seals, all keys open, and rotation seals every value again under the first key to retire the
// others. Blind indexes do not depend on the ring, because they would change with every rotation; they use a separate
// index key, generated once and stored sealed in the database (see [IndexKey]).
//
// The package does not define where values are stored, which fields are protected, or who may read them.
package phi

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// KeySize is the length of every key in bytes: AES-256.
const KeySize = 32

const (
	currentFormat  = "v2"
	unpaddedFormat = "v1" // the format of earlier releases: without padding
	nonceSize      = 12   // 96 bits, RFC 5116 section 5.2
	tagSize        = 16

	paddingByte = 0x80 // followed by zeros: ISO/IEC 7816-4
	minPadding  = 16
)

// The errors of sealed values. No error of this package quotes its input.
var (
	ErrFormat         = errors.New("phi: not a sealed value")
	ErrUnknownKey     = errors.New("phi: sealed under a key that is not in the ring")
	ErrAuthentication = errors.New("phi: sealed value does not belong here or was changed")
	// ErrBinding means that the purpose or the row id is empty, or the purpose contains "|".
	ErrBinding = errors.New(`phi: sealing needs a row id and a purpose without "|"`)
)

// encoding is strict, so that a sealed value has exactly one valid encoding.
var encoding = base64.RawURLEncoding.Strict()

var keyIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// Key is an AES-256 key with its id in sealed values: 1 to 32 letters, digits, dots, dashes or underscores. It refuses
// to print.
type Key struct {
	ID     string
	Secret [KeySize]byte
}

// KeyRing seals fields with its first key and opens them with any. It is safe for concurrent use.
type KeyRing struct {
	primary string
	ciphers map[string]cipher.AEAD // built once: building a cipher costs three times as much as sealing
	secrets map[string][KeySize]byte
	derived sync.Map // derivation to []byte
}

// NewKeyRing returns a ring of at least one key. The ids must be distinct.
func NewKeyRing(keys ...Key) (*KeyRing, error) {
	if len(keys) == 0 {
		return nil, errors.New("phi: a key ring needs a key")
	}
	ring := &KeyRing{
		primary: keys[0].ID, ciphers: make(map[string]cipher.AEAD, len(keys)), secrets: make(map[string][KeySize]byte, len(keys)),
	}
	for i, key := range keys {
		if !keyIDPattern.MatchString(key.ID) {
			return nil, fmt.Errorf("phi: key %d needs an id of 1 to 32 letters, digits, dots, dashes or underscores", i+1)
		}
		if ring.ciphers[key.ID] != nil {
			return nil, fmt.Errorf("phi: key %d repeats the id of an earlier key", i+1)
		}
		block, err := aes.NewCipher(key.Secret[:])
		if err != nil {
			return nil, fmt.Errorf("phi: building the cipher of key %d: %w", i+1, err)
		}
		if ring.ciphers[key.ID], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("phi: building the cipher of key %d: %w", i+1, err)
		}
		ring.secrets[key.ID] = key.Secret
	}
	return ring, nil
}

// Seal encrypts one field with AES-256-GCM under the first key and binds it to its purpose and row. The result is
//
//	v2:<key id>:<nonce>:<ciphertext and tag>
//
// with base64url parts without padding and a random 96-bit nonce; the additional data is "v2|", purpose, "|", row id.
// The purpose is a constant in the code that does not change when a column is renamed. The plaintext is the field, the
// byte 0x80, and zeros up to [paddedSize], so that the ciphertext reveals little about a name's length. An empty field
// stays empty: absence is not hidden. Retire a key before 2^32 seals (NIST SP 800-38D section 8.3).
// Source: docs/decisions/security.md, "Encryption at rest".
func (r *KeyRing) Seal(plain, purpose, rowID string) (string, error) {
	return r.sealWith(r.primary, plain, purpose, rowID)
}

func (r *KeyRing) sealWith(keyID, plain, purpose, rowID string) (string, error) {
	bound, err := additionalData(currentFormat, purpose, rowID)
	if err != nil || plain == "" {
		return "", err
	}
	size := paddedSize(len(plain) + 1)
	raw := make([]byte, nonceSize+size, nonceSize+size+tagSize)
	nonce, field := raw[:nonceSize], raw[nonceSize:]
	rand.Read(nonce) // never returns an error
	field[copy(field, plain)] = paddingByte
	field = r.ciphers[keyID].Seal(field[:0], nonce, field, bound) //nolint:gosec // G407: the nonce is random, see above

	sealed := make([]byte, 0, len(currentFormat)+len(keyID)+encoding.EncodedLen(nonceSize)+encoding.EncodedLen(len(field))+3)
	sealed = append(sealed, currentFormat+":"...)
	sealed = append(sealed, keyID...)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, nonce)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, field)
	return string(sealed), nil
}

// paddedSize returns the padded size of a field of n bytes, including the 0x80 byte: multiples of 16 up to 256, then
// multiples of a sixteenth of the next power of two. Names have one of three sizes, and a field above 128 bytes grows by
// at most an eighth.
func paddedSize(n int) int {
	step := max(minPadding, 1<<bits.Len(uint(n-1))>>4)
	return (n + step - 1) / step * step
}

// Open returns the field that Seal sealed for the same purpose and row, in the current format or an earlier one. For any
// input, its errors are [ErrFormat], [ErrUnknownKey], [ErrAuthentication] and [ErrBinding].
func (r *KeyRing) Open(sealed, purpose, rowID string) (string, error) {
	form, keyID, nonceText, fieldText, ok := split(sealed)
	bound, err := additionalData(form, purpose, rowID)
	if err != nil || sealed == "" {
		return "", err
	}
	if !ok {
		return "", ErrFormat
	}
	aead := r.ciphers[keyID]
	if aead == nil {
		return "", ErrUnknownKey
	}
	raw := make([]byte, 0, encoding.DecodedLen(len(nonceText))+encoding.DecodedLen(len(fieldText)))
	if raw, err = encoding.AppendDecode(raw, []byte(nonceText)); err != nil || len(raw) != nonceSize {
		return "", ErrFormat
	}
	if raw, err = encoding.AppendDecode(raw, []byte(fieldText)); err != nil || len(raw) <= nonceSize+tagSize {
		return "", ErrFormat
	}
	nonce, field := raw[:nonceSize], raw[nonceSize:]
	if field, err = aead.Open(field[:0], nonce, field, bound); err != nil {
		return "", ErrAuthentication
	}
	if form == unpaddedFormat {
		return string(field), nil
	}
	field = bytes.TrimRight(field, "\x00")
	if len(field) < 2 || field[len(field)-1] != paddingByte {
		return "", ErrFormat
	}
	return string(field[:len(field)-1]), nil
}

// PrimaryKeyID returns the id of the key that seals.
func (r *KeyRing) PrimaryKeyID() string { return r.primary }

// NeedsRotation reports whether a value is sealed under another key than the first, or in the format of an earlier
// release.
func (r *KeyRing) NeedsRotation(sealed string) bool {
	form, keyID, _, _, ok := split(sealed)
	return ok && (keyID != r.primary || form != currentFormat)
}

// SealedPrefix returns the prefix of all values that Seal writes.
func (r *KeyRing) SealedPrefix() string { return currentFormat + ":" + r.primary + ":" }

// KeyID returns the id of the key of a sealed value. ok is false if the value is empty or not sealed.
func KeyID(sealed string) (id string, ok bool) {
	_, id, _, _, ok = split(sealed)
	return id, ok
}

// split returns the parts of a sealed value. It rejects line breaks, because base64 decoding would skip them.
func split(sealed string) (form, keyID, nonce, field string, ok bool) {
	form, rest, ok := strings.Cut(sealed, ":")
	if !ok || form != currentFormat && form != unpaddedFormat || strings.ContainsAny(rest, "\r\n") {
		return "", "", "", "", false
	}
	keyID, rest, _ = strings.Cut(rest, ":")
	nonce, field, ok = strings.Cut(rest, ":")
	if !ok || keyID == "" || nonce == "" || field == "" {
		return "", "", "", "", false
	}
	return form, keyID, nonce, field, true
}

// additionalData binds a field to its purpose and row, and since v2 to its format. It is unambiguous, because a purpose
// contains no "|" and no purpose has the name of a format.
func additionalData(form, purpose, rowID string) ([]byte, error) {
	if purpose == "" || rowID == "" || strings.Contains(purpose, "|") {
		return nil, ErrBinding
	}
	if form == currentFormat {
		return []byte(currentFormat + "|" + purpose + "|" + rowID), nil
	}
	return []byte(purpose + "|" + rowID), nil
}

// derivation identifies a secret derived from a key of the ring.
type derivation struct{ keyID, label string }

// Derive returns a 32-byte secret derived from one key of the ring and a label. Use it for secrets that must become
// invalid with that key: signatures, for example, are made under the [KeyRing.PrimaryKeyID] and checked under the key
// that they name. ok is false if the ring has no such key. Each use has its own label, which must be a constant in the
// code, because derived secrets are cached.
func (r *KeyRing) Derive(keyID, label string) (secret []byte, ok bool) {
	root, ok := r.secrets[keyID]
	if !ok {
		return nil, false
	}
	name := derivation{keyID, label}
	if known, found := r.derived.Load(name); found {
		return slices.Clone(known.([]byte)), true
	}
	secret, err := hkdf.Key(sha256.New, root[:], nil, "vigil v1 ring: "+label, KeySize)
	if err != nil { // only for more than 255 blocks, or for short keys if FIPS 140 is enforced
		return nil, false
	}
	r.derived.Store(name, secret)
	return slices.Clone(secret), true
}

// The plaintext and the purpose of check values.
const (
	checkText    = "vigil"
	checkPurpose = "ring_key"
)

// CheckValue returns a value that only this key opens. It distinguishes the key from a different key with the same id.
func (r *KeyRing) CheckValue(keyID string) (string, error) {
	if !r.Has(keyID) {
		return "", ErrUnknownKey
	}
	return r.sealWith(keyID, checkText, checkPurpose, keyID)
}

// MatchesCheckValue reports whether the ring has the key that made a check value, with the same secret.
func (r *KeyRing) MatchesCheckValue(keyID, checkValue string) bool {
	id, sealed := KeyID(checkValue)
	text, err := r.Open(checkValue, checkPurpose, keyID)
	return sealed && id == keyID && err == nil && text == checkText
}

// Has reports whether the ring has a key with this id.
func (r *KeyRing) Has(keyID string) bool { return r.ciphers[keyID] != nil }

// KeyIDs returns the ids of all keys, starting with the one that seals.
func (r *KeyRing) KeyIDs() []string {
	ids := []string{r.primary}
	for _, id := range slices.Sorted(maps.Keys(r.ciphers)) {
		if id != r.primary {
			ids = append(ids, id)
		}
	}
	return ids
}

// DetachedRing returns a ring of one key, derived from the index key and a secret that only the caller of the API has. Opening its values requires both.
// Against an attacker with the index key it is only as strong as the secret, so also seal such a value with the [KeyRing].
func (s *Sealer) DetachedRing(secret string) (*KeyRing, error) {
	key, err := hkdf.Key(sha256.New, s.root.secret[:], []byte(secret), "vigil v1 key: held with another", KeySize)
	if err != nil {
		return nil, fmt.Errorf("phi: deriving the key of a detached ring: %w", err)
	}
	return NewKeyRing(Key{ID: "held", Secret: [KeySize]byte(key)})
}
