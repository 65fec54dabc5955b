package phi

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// IndexKey is the secret behind every blind index and keyed hash. It is random, made once per database with
// [NewIndexKey], kept there sealed with [KeyRing.SealIndexKey] and re-sealed like any other field when the ring
// rotates. It is no key of the ring and is not derived from one: an index derived from the first key would
// change with every rotation, one derived from the last key would be lost when that key is dropped, and either
// way equal values would stop finding each other. Losing it means computing every index anew from opened fields.
// It refuses to print.
type IndexKey struct{ secret [KeySize]byte }

// NewIndexKey makes a fresh index key.
func NewIndexKey() IndexKey {
	var key IndexKey
	rand.Read(key.secret[:]) // never fails, crypto/rand promises
	return key
}

// The place an index key is bound to: there is one per database. What is sealed at the first place was sealed before audit trails had a key;
// it tells a database that is only now being brought up to date from one whose trail was taken apart.
const (
	indexKeyPurpose = "index_key"
	firstKeyRow     = "1"
	indexKeyRow     = "2"
)

// SealIndexKey seals the index key for storage.
func (r *KeyRing) SealIndexKey(key IndexKey) (string, error) {
	return r.Seal(string(key.secret[:]), indexKeyPurpose, indexKeyRow)
}

// OpenIndexKey opens what SealIndexKey sealed. An empty value is [ErrFormat]: an absent key must never pass for one.
func (r *KeyRing) OpenIndexKey(sealed string) (IndexKey, error) {
	secret, err := r.Open(sealed, indexKeyPurpose, indexKeyRow)
	if errors.Is(err, ErrAuthentication) {
		secret, err = r.Open(sealed, indexKeyPurpose, firstKeyRow)
	}
	if err != nil {
		return IndexKey{}, err
	}
	if len(secret) != KeySize {
		return IndexKey{}, ErrFormat
	}
	return IndexKey{[KeySize]byte([]byte(secret))}, nil
}

// BeforeAuditKeys reports whether an index key was sealed before audit trails had a key.
func (r *KeyRing) BeforeAuditKeys(sealed string) bool {
	secret, err := r.Open(sealed, indexKeyPurpose, firstKeyRow)
	return err == nil && secret != ""
}

// Sealer is what the engines hold: the ring that seals and opens, and the keyed hashes. It is safe for
// concurrent use and refuses to print.
type Sealer struct {
	*KeyRing
	root                             IndexKey
	blindIndex, backupCode, loginKey []byte
}

// NewSealer joins a ring with the database's index key and derives a key for each use of the latter with
// HKDF-SHA-256 (RFC 5869).
func NewSealer(ring *KeyRing, key IndexKey) (*Sealer, error) {
	if ring == nil || key == (IndexKey{}) {
		return nil, errors.New("phi: a sealer needs a key ring and an index key")
	}
	s := &Sealer{KeyRing: ring, root: key}
	for label, derived := range map[string]*[]byte{
		"blind index": &s.blindIndex,
		"backup code": &s.backupCode,
		"login key":   &s.loginKey,
	} {
		var err error
		if *derived, err = s.derive("hash", label); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Labels of keys that other packages derive.
const (
	// CursorKeyLabel is for the key that protects page cursors.
	CursorKeyLabel = "page cursor"
	// PushTopicKeyLabel is for the key that makes push topics unreadable.
	PushTopicKeyLabel = "push topic"
)

// DeriveKey returns the 32-byte key of a label, the same for as long as the index key lives. Each use has a
// label of its own.
func (s *Sealer) DeriveKey(label string) ([]byte, error) { return s.derive("key", label) }

func (s *Sealer) derive(kind, label string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, s.root.secret[:], nil, "vigil v1 "+kind+": "+label, KeySize)
	if err != nil {
		return nil, fmt.Errorf("phi: deriving the %s key: %w", label, err)
	}
	return key, nil
}

// Index is the blind index of a normalised value: HMAC-SHA-256, 43 base64url characters. Equal values under the
// same label have equal indexes; the label ("ssn", "email", …) is a constant of the code and keeps the columns
// apart. An absent value has no index, so that absent values do not look alike.
// Source: docs/decisions/security.md, "Lookups on encrypted values".
func (s *Sealer) Index(label, normalised string) string {
	if normalised == "" {
		return ""
	}
	return keyedHash(s.blindIndex, label+"\x00"+normalised)
}

// BackupCodeHash is what is stored of a normalised backup code. The user's id keeps equal codes of two users apart.
// Source: docs/decisions/authentication.md, "Backup codes".
func (s *Sealer) BackupCodeHash(userID, normalised string) string {
	return keyedHash(s.backupCode, userID+"\x00"+normalised)
}

// LoginKey names a normalised e-mail address in counters and audit entries of sign-ins that match no account.
// Source: docs/decisions/authentication.md, "Administrator notice and unlock" and docs/decisions/security.md, "Audit record".
func (s *Sealer) LoginKey(normalisedEmail string) string {
	return keyedHash(s.loginKey, normalisedEmail)
}

func keyedHash(key []byte, message string) string {
	return base64.RawURLEncoding.EncodeToString(MAC(key, message))
}

// MAC is the HMAC-SHA-256 of a message under a key of [Sealer.DeriveKey].
func MAC(key []byte, message string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return mac.Sum(nil)
}
