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

// IndexKey is the secret of all blind indexes and keyed hashes. It is random, generated once per database with
// [NewIndexKey], stored sealed with [KeyRing.SealIndexKey], and sealed again in a rotation. It is neither a key of the
// ring nor derived from one: indexes would then change with a rotation or the removal of a key, and equal values would
// no longer match. If it is lost, every index must be computed again from opened fields. It refuses to print.
type IndexKey struct{ secret [KeySize]byte }

// NewIndexKey generates an index key.
func NewIndexKey() IndexKey {
	var key IndexKey
	rand.Read(key.secret[:]) // never returns an error
	return key
}

// The purpose and row ids of the index key. The legacy row id marks an index key sealed before
// audit trails had a key: it distinguishes a database that is being upgraded from one whose audit state was
// removed.
const (
	indexKeyPurpose     = "index_key"
	legacyIndexKeyRowID = "1"
	indexKeyRowID       = "2"
)

// SealIndexKey seals the index key for storage.
func (r *KeyRing) SealIndexKey(key IndexKey) (string, error) {
	return r.Seal(string(key.secret[:]), indexKeyPurpose, indexKeyRowID)
}

// OpenIndexKey opens an index key sealed by SealIndexKey. It fails with [ErrFormat] for an empty value, so that an absent key is never used.
func (r *KeyRing) OpenIndexKey(sealed string) (IndexKey, error) {
	secret, err := r.Open(sealed, indexKeyPurpose, indexKeyRowID)
	if errors.Is(err, ErrAuthentication) {
		secret, err = r.Open(sealed, indexKeyPurpose, legacyIndexKeyRowID)
	}
	if err != nil {
		return IndexKey{}, err
	}
	if len(secret) != KeySize {
		return IndexKey{}, ErrFormat
	}
	return IndexKey{[KeySize]byte([]byte(secret))}, nil
}

// PredatesAuditKeys reports whether an index key was sealed before audit trails had a key.
func (r *KeyRing) PredatesAuditKeys(sealed string) bool {
	secret, err := r.Open(sealed, indexKeyPurpose, legacyIndexKeyRowID)
	return err == nil && secret != ""
}

// Sealer combines a key ring with the keyed hashes of the index key. It is safe for concurrent use and refuses to
// print.
type Sealer struct {
	*KeyRing
	root                             IndexKey
	blindIndex, backupCode, loginKey []byte
}

// NewSealer returns a sealer of a ring and the database's index key. It derives a separate key for each keyed hash with
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

// The labels of keys that other packages derive.
const (
	// CursorKeyLabel is the label of the key that protects page cursors.
	CursorKeyLabel = "page cursor"
	// PushTopicKeyLabel is the label of the key that makes push topics unreadable.
	PushTopicKeyLabel = "push topic"
)

// DeriveKey returns the 32-byte key of a label, derived from the index key and unaffected by rotation. Each use has its
// own label.
func (s *Sealer) DeriveKey(label string) ([]byte, error) { return s.derive("key", label) }

func (s *Sealer) derive(kind, label string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, s.root.secret[:], nil, "vigil v1 "+kind+": "+label, KeySize)
	if err != nil {
		return nil, fmt.Errorf("phi: deriving the %s key: %w", label, err)
	}
	return key, nil
}

// Index returns the blind index of a normalized value: HMAC-SHA-256, 43 base64url characters. Equal values under the
// same label have equal indexes. The label ("ssn", "email", …) is a constant in the code and separates the columns. An
// empty value has no index, so that absent values do not match each other.
// Source: docs/decisions/security.md, "Lookups on encrypted values".
func (s *Sealer) Index(label, normalized string) string {
	if normalized == "" {
		return ""
	}
	return keyedHash(s.blindIndex, label+"\x00"+normalized)
}

// BackupCodeHash returns the stored hash of a normalized backup code. It depends on the user id, so that equal codes of two users differ.
// Source: docs/decisions/authentication.md, "Backup codes".
func (s *Sealer) BackupCodeHash(userID, normalized string) string {
	return keyedHash(s.backupCode, userID+"\x00"+normalized)
}

// LoginKey returns the key of a normalized email address in counters and audit entries of sign-ins that match no account.
// Source: docs/decisions/authentication.md, "Administrator notice and unlock" and docs/decisions/security.md, "Audit record".
func (s *Sealer) LoginKey(normalizedEmail string) string {
	return keyedHash(s.loginKey, normalizedEmail)
}

func keyedHash(key []byte, message string) string {
	return base64.RawURLEncoding.EncodeToString(MAC(key, message))
}

// MAC returns the HMAC-SHA-256 of a message under a key of [Sealer.DeriveKey].
func MAC(key []byte, message string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return mac.Sum(nil)
}
