// Package phi knows how protected health information is kept and how it is kept from view: sealing one field
// under a ring of keys, finding a sealed value again by a blind index, and types that refuse to print.
//
// A sealed field is bound to its purpose and its row, so a ciphertext copied to another row or column does not
// open. The ring holds several keys: the first seals, all open, and re-sealing under the first is how a key is
// retired. Blind indexes cannot hang on that ring, or they would all change when it does; they hang on an index
// key of their own, made once and kept sealed beside the data (see [IndexKey]).
//
// The package refuses to know where anything is stored, which fields are protected and who may read them.
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
	version   = "v2"
	unpadded  = "v1" // sealed by earlier releases, as long as the field
	nonceSize = 12   // 96 bits, RFC 5116 section 5.2
	tagSize   = 16

	padding      = 0x80 // and zeros: ISO/IEC 7816-4
	smallestStep = 16
)

// What can be wrong with a sealed value. None of the errors of this package quotes its input.
var (
	ErrFormat         = errors.New("phi: not a sealed value")
	ErrUnknownKey     = errors.New("phi: sealed under a key that is not in the ring")
	ErrAuthentication = errors.New("phi: sealed value does not belong here or was changed")
	// ErrBinding means that the caller named no purpose or no row, or a purpose that contains "|".
	ErrBinding = errors.New(`phi: sealing needs a row id and a purpose without "|"`)
)

// encoding is strict so that a sealed value has exactly one spelling.
var encoding = base64.RawURLEncoding.Strict()

var keyIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// Key is one AES-256 key with the name it is known by in sealed values: 1 to 32 letters, digits, dots, dashes
// or underscores. It refuses to print.
type Key struct {
	ID     string
	Secret [KeySize]byte
}

// KeyRing seals and opens fields. The first key seals, all open. It is safe for concurrent use.
type KeyRing struct {
	primary string
	ciphers map[string]cipher.AEAD // built once: a cipher per call costs three times the sealing itself
	secrets map[string][KeySize]byte
	derived sync.Map // derivation to []byte
}

// NewKeyRing builds a ring of at least one key with distinct ids.
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
// The purpose is a constant of the code that stays when a column is renamed. What is encrypted is the field, a byte
// 0x80, and as many zeros as [paddedSize] asks for, so that the ciphertext tells little about a name's length. An
// empty field stays empty: absence is not hidden. A key should be retired before 2^32 seals (NIST SP 800-38D section 8.3).
// Source: docs/decisions/security.md, "Encryption at rest".
func (r *KeyRing) Seal(plain, purpose, rowID string) (string, error) {
	return r.sealUnder(r.primary, plain, purpose, rowID)
}

func (r *KeyRing) sealUnder(keyID, plain, purpose, rowID string) (string, error) {
	bound, err := additionalData(version, purpose, rowID)
	if err != nil || plain == "" {
		return "", err
	}
	size := paddedSize(len(plain) + 1)
	raw := make([]byte, nonceSize+size, nonceSize+size+tagSize)
	nonce, field := raw[:nonceSize], raw[nonceSize:]
	rand.Read(nonce) // never fails, crypto/rand promises
	field[copy(field, plain)] = padding
	field = r.ciphers[keyID].Seal(field[:0], nonce, field, bound) //nolint:gosec // G407: two lines up, the nonce was drawn

	sealed := make([]byte, 0, len(version)+len(keyID)+encoding.EncodedLen(nonceSize)+encoding.EncodedLen(len(field))+3)
	sealed = append(sealed, version+":"...)
	sealed = append(sealed, keyID...)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, nonce)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, field)
	return string(sealed), nil
}

// paddedSize is how many bytes are encrypted of a field and its mark, which have n together: 16, 32, 48, 64 and so on up
// to 256, then steps of a sixteenth of the power of two above. Names have one of three sizes, and nothing above 128
// bytes grows by more than an eighth.
func paddedSize(n int) int {
	step := max(smallestStep, 1<<bits.Len(uint(n-1))>>4)
	return (n + step - 1) / step * step
}

// Open returns the field that Seal sealed for the same purpose and row, in the form of this release or of earlier ones.
// It fails with [ErrFormat], [ErrUnknownKey], [ErrAuthentication] or [ErrBinding], whatever bytes it is given.
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
	if form == unpadded {
		return string(field), nil
	}
	field = bytes.TrimRight(field, "\x00")
	if len(field) < 2 || field[len(field)-1] != padding {
		return "", ErrFormat
	}
	return string(field[:len(field)-1]), nil
}

// PrimaryKeyID is the id of the key that seals.
func (r *KeyRing) PrimaryKeyID() string { return r.primary }

// NeedsRotation reports whether a sealed value is not as Seal would write it now: it lies under another key than the
// first, or has the form of an earlier release.
func (r *KeyRing) NeedsRotation(sealed string) bool {
	form, keyID, _, _, ok := split(sealed)
	return ok && (keyID != r.primary || form != version)
}

// SealedPrefix is how everything begins that Seal writes now.
func (r *KeyRing) SealedPrefix() string { return version + ":" + r.primary + ":" }

// KeyID is the id of the key a value was sealed under; !ok when the value is empty or not sealed.
func KeyID(sealed string) (id string, ok bool) {
	_, id, _, _, ok = split(sealed)
	return id, ok
}

// split takes a sealed value apart. Line breaks are refused here because base64 decoding would skip them.
func split(sealed string) (form, keyID, nonce, field string, ok bool) {
	form, rest, ok := strings.Cut(sealed, ":")
	if !ok || form != version && form != unpadded || strings.ContainsAny(rest, "\r\n") {
		return "", "", "", "", false
	}
	keyID, rest, _ = strings.Cut(rest, ":")
	nonce, field, ok = strings.Cut(rest, ":")
	if !ok || keyID == "" || nonce == "" || field == "" {
		return "", "", "", "", false
	}
	return form, keyID, nonce, field, true
}

// additionalData binds a field to its place, and to its form where forms can be told apart. With a purpose free of "|",
// and no purpose called like a form, no two places share it.
func additionalData(form, purpose, rowID string) ([]byte, error) {
	if purpose == "" || rowID == "" || strings.Contains(purpose, "|") {
		return nil, ErrBinding
	}
	if form == version {
		return []byte(version + "|" + purpose + "|" + rowID), nil
	}
	return []byte(purpose + "|" + rowID), nil
}

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
	if known, found := r.derived.Load(name); found {
		return slices.Clone(known.([]byte)), true
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
