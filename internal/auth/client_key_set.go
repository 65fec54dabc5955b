package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// Limits of a key set.
const (
	maxKeys        = 20
	maxKeySetBytes = 64 << 10
	minRSABits     = 2048
	maxRSABits     = 8192 // checking a signature under a larger key costs too much CPU
)

// Signature algorithms that SMART requires. Source: HL7 SMART App Launch 2, "Client Authentication: Asymmetric".
var (
	rs384 = jwt.SigningMethodRS384.Alg()
	es384 = jwt.SigningMethodES384.Alg()
)

// keySet holds public keys that verify assertions.
type keySet []jose.JSONWebKey

// find returns the key with the id and algorithm, or nil.
func (s keySet) find(kid, alg string) crypto.PublicKey {
	for _, key := range s {
		if key.KeyID == kid && signingAlgorithm(key) == alg {
			return key.Key
		}
	}
	return nil
}

// signingAlgorithm returns the algorithm with which the key may sign assertions, or "" if none.
func signingAlgorithm(key jose.JSONWebKey) string {
	if key.KeyID == "" || key.Use != "" && key.Use != "sig" || !key.Valid() {
		return ""
	}
	alg := ""
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= minRSABits && bits <= maxRSABits && public.E > 2 && public.E%2 == 1 {
			alg = rs384
		}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P384() {
			alg = es384
		}
	}
	if key.Algorithm != "" && key.Algorithm != alg {
		return ""
	}
	return alg
}

// Errors of a key set.
var (
	errNotKeySet      = errors.New("must be a JSON Web Key Set: {\"keys\": [...]}")
	errTooManyKeys    = errors.New("must have at most 20 keys")
	errPrivateKey     = errors.New("must contain public keys only: a private key must not leave its owner")
	errUnsupportedKey = errors.New("must contain only keys with a unique kid: RSA of 2048 to 8192 bits for RS384, or EC on P-384 for ES384")
	errNoKeys         = errors.New("must have at least one key")
)

func splitKeySet(raw []byte) ([]json.RawMessage, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errNotKeySet
	}
	if len(set.Keys) > maxKeys {
		return nil, errTooManyKeys
	}
	return set.Keys, nil
}

// parseConfiguredKeys parses the keys that an administrator entered. Every key must be usable.
func parseConfiguredKeys(raw []byte) (keySet, error) {
	members, err := splitKeySet(raw)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, errNoKeys
	}
	keys, names := keySet{}, map[string]bool{}
	for _, member := range members {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(member); err != nil {
			return nil, errUnsupportedKey
		}
		if !key.IsPublic() {
			return nil, errPrivateKey
		}
		if signingAlgorithm(key) == "" || names[key.KeyID] {
			return nil, errUnsupportedKey
		}
		names[key.KeyID] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// parsePublishedKeys parses the keys that a client publishes and skips keys with other uses.
func parsePublishedKeys(raw []byte) (keySet, error) {
	members, err := splitKeySet(raw)
	if err != nil {
		return nil, err
	}
	keys := keySet{}
	for _, member := range members {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(member) == nil && key.IsPublic() && signingAlgorithm(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// encode returns the keys in the stored format.
func (s keySet) encode() (json.RawMessage, error) { return json.Marshal(jose.JSONWebKeySet{Keys: s}) }

// keyIDs returns the key ids, for the audit trail.
func (s keySet) keyIDs() []string {
	names := make([]string, len(s))
	for i, key := range s {
		names[i] = key.KeyID
	}
	return names
}
