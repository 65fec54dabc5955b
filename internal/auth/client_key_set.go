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

// Bounds of a set of keys.
const (
	mostKeys    = 20
	mostKeyData = 64 << 10
	leastRSA    = 2048
	mostRSA     = 8192 // beyond it a check of a signature costs more than it is worth to whoever asks for it
)

// The ways of signing that SMART asks for. Source: HL7 SMART App Launch 2, "Client Authentication: Asymmetric".
var (
	rs384 = jwt.SigningMethodRS384.Alg()
	es384 = jwt.SigningMethodES384.Alg()
)

// keySet are public keys that can check an assertion.
type keySet []jose.JSONWebKey

// find is the key by that name for a way of signing; nil for none.
func (s keySet) find(kid, alg string) crypto.PublicKey {
	for _, key := range s {
		if key.KeyID == kid && signs(key) == alg {
			return key.Key
		}
	}
	return nil
}

// signs is the way in which a key signs assertions; "" when it does not.
func signs(key jose.JSONWebKey) string {
	if key.KeyID == "" || key.Use != "" && key.Use != "sig" || !key.Valid() {
		return ""
	}
	alg := ""
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= leastRSA && bits <= mostRSA && public.E > 2 && public.E%2 == 1 {
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

// What can be wrong with a set of keys.
var (
	errNoSet   = errors.New("must be a JSON Web Key Set: {\"keys\": [...]}")
	errTooMany = errors.New("must have at most 20 keys")
	errPrivate = errors.New("must hold public keys only: a private key never leaves its owner")
	errUnfit   = errors.New("must hold keys with a kid of their own: RSA of 2048 to 8192 bits for RS384, or EC on P-384 for ES384")
	errNoKeys  = errors.New("must have at least one key")
)

func readSet(raw []byte) ([]json.RawMessage, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errNoSet
	}
	if len(set.Keys) > mostKeys {
		return nil, errTooMany
	}
	return set.Keys, nil
}

// parseGiven reads the keys that an administrator gave: all of them have to be of use.
func parseGiven(raw []byte) (keySet, error) {
	members, err := readSet(raw)
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
			return nil, errUnfit
		}
		if !key.IsPublic() {
			return nil, errPrivate
		}
		if signs(key) == "" || names[key.KeyID] {
			return nil, errUnfit
		}
		names[key.KeyID] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// parseFetched reads the keys that a client publishes, and passes over those that are for something else.
func parseFetched(raw []byte) (keySet, error) {
	members, err := readSet(raw)
	if err != nil {
		return nil, err
	}
	keys := keySet{}
	for _, member := range members {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(member) == nil && key.IsPublic() && signs(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// encode writes the keys as they are stored.
func (s keySet) encode() (json.RawMessage, error) { return json.Marshal(jose.JSONWebKeySet{Keys: s}) }

// names are what the keys are called, for the audit trail.
func (s keySet) names() []string {
	names := make([]string, len(s))
	for i, key := range s {
		names[i] = key.KeyID
	}
	return names
}
