package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// Random returns an opaque token or secret: 256 random bits in base64url.
func Random() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// Hash returns the SHA-256 of a random value, for storage. 256 random bits cannot be guessed, so the hash needs no salt or key.
func Hash(random string) string {
	sum := sha256.Sum256([]byte(random))
	return hex.EncodeToString(sum[:])
}
