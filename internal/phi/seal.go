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
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// KeySize is the length of every key in bytes: AES-256.
const KeySize = 32

const (
	version   = "v1"
	nonceSize = 12 // 96 bits, RFC 5116 section 5.2
	tagSize   = 16
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
//	v1:<key id>:<nonce>:<ciphertext and tag>
//
// with base64url parts without padding and a random 96-bit nonce; the additional data is purpose, "|", row id.
// The purpose is a constant of the code that stays when a column is renamed. An empty field stays empty: absence
// is not hidden. A key should be retired before 2^32 seals (NIST SP 800-38D section 8.3).
// Source: docs/decisions.md, "Encryption at rest".
func (r *KeyRing) Seal(plain, purpose, rowID string) (string, error) {
	bound, err := additionalData(purpose, rowID)
	if err != nil || plain == "" {
		return "", err
	}
	raw := make([]byte, nonceSize+len(plain), nonceSize+len(plain)+tagSize)
	nonce, field := raw[:nonceSize], raw[nonceSize:]
	rand.Read(nonce) // never fails, crypto/rand promises
	copy(field, plain)
	field = r.ciphers[r.primary].Seal(field[:0], nonce, field, bound) //nolint:gosec // G407: two lines up, the nonce was drawn

	sealed := make([]byte, 0, len(version)+len(r.primary)+encoding.EncodedLen(nonceSize)+encoding.EncodedLen(len(field))+3)
	sealed = append(sealed, version+":"...)
	sealed = append(sealed, r.primary...)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, nonce)
	sealed = append(sealed, ':')
	sealed = encoding.AppendEncode(sealed, field)
	return string(sealed), nil
}

// Open returns the field that Seal sealed for the same purpose and row. It fails with [ErrFormat],
// [ErrUnknownKey], [ErrAuthentication] or [ErrBinding], whatever bytes it is given.
func (r *KeyRing) Open(sealed, purpose, rowID string) (string, error) {
	bound, err := additionalData(purpose, rowID)
	if err != nil || sealed == "" {
		return "", err
	}
	keyID, nonceText, fieldText, ok := split(sealed)
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
	return string(field), nil
}

// PrimaryKeyID is the id of the key that seals.
func (r *KeyRing) PrimaryKeyID() string { return r.primary }

// NeedsRotation reports whether a sealed value lies under another key than the one that seals now.
func (r *KeyRing) NeedsRotation(sealed string) bool {
	keyID, ok := KeyID(sealed)
	return ok && keyID != r.primary
}

// KeyID is the id of the key a value was sealed under; !ok when the value is empty or not sealed.
func KeyID(sealed string) (id string, ok bool) {
	id, _, _, ok = split(sealed)
	return id, ok
}

// split takes a sealed value apart. Line breaks are refused here because base64 decoding would skip them.
func split(sealed string) (keyID, nonce, field string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, version+":")
	if !ok || strings.ContainsAny(rest, "\r\n") {
		return "", "", "", false
	}
	keyID, rest, _ = strings.Cut(rest, ":")
	nonce, field, ok = strings.Cut(rest, ":")
	if !ok || keyID == "" || nonce == "" || field == "" {
		return "", "", "", false
	}
	return keyID, nonce, field, true
}

// additionalData binds a field to its place. With a purpose free of "|" no two places share it.
func additionalData(purpose, rowID string) ([]byte, error) {
	if purpose == "" || rowID == "" || strings.Contains(purpose, "|") {
		return nil, ErrBinding
	}
	return []byte(purpose + "|" + rowID), nil
}
