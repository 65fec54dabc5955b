package emr

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
)

// jwk is a public key as SMART wants it published. Source: RFC 7517; docs/decisions/emr.md, "Backend flow scopes and keys".
type jwk struct {
	Kty    string   `json:"kty"`
	Use    string   `json:"use"`
	Alg    string   `json:"alg"`
	Kid    string   `json:"kid"`
	N      string   `json:"n"`
	E      string   `json:"e"`
	KeyOps []string `json:"key_ops"`
}

// JWKS is the key set the EMR checks our assertions against: the public halves of the keys that are given, current
// first. Nil keys are left out.
func JWKS(keys ...*rsa.PrivateKey) []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, key := range keys {
		if key == nil {
			continue
		}
		n, e := members(&key.PublicKey)
		set.Keys = append(set.Keys, jwk{
			Kty: "RSA", Use: "sig", Alg: "RS384", Kid: KeyID(&key.PublicKey), N: n, E: e, KeyOps: []string{"verify"},
		})
	}
	out, _ := json.Marshal(set) // strings alone cannot fail
	return out
}

// KeyID is the SHA-256 thumbprint of a public key. Source: RFC 7638.
func KeyID(key *rsa.PublicKey) string {
	n, e := members(key)
	// The members in lexical order without white space; base64url needs no escaping.
	sum := sha256.Sum256([]byte(`{"e":"` + e + `","kty":"RSA","n":"` + n + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func members(key *rsa.PublicKey) (n, e string) {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
}
