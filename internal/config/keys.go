package config

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// minRSABits is the minimum size of the EMR signing key. Source: docs/decisions/security.md, "Settings named by the spec"; RFC 7518, section
// 3.3.
const minRSABits = 2048

// parseEncryptionKeys parses kid:base64(32 bytes)[,kid:base64...].
func parseEncryptionKeys(text string) ([]phi.Key, error) {
	var keys []phi.Key
	for i, item := range splitList(text) {
		id, encoded, ok := strings.Cut(item, ":")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(secret) != phi.KeySize {
			return nil, fmt.Errorf("key %d must be an id, a colon and %d bytes in base64", i+1, phi.KeySize)
		}
		keys = append(keys, phi.Key{ID: id, Secret: [phi.KeySize]byte(secret)})
	}
	if _, err := phi.NewKeyRing(keys...); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "phi: "))
	}
	return keys, nil
}

// pkcs8Type is the PEM label of unencrypted PKCS #8. Source: RFC 7468, section 10.
const pkcs8Type = "PRIVATE KEY"

// parseRSAKey parses a PEM private key in PKCS #1 or PKCS #8, with line breaks or \n, or the base64 of PKCS #8 alone, which needs no quotes in
// shells and environment files.
func parseRSAKey(text string) (rsa.PrivateKey, error) {
	refused := errors.New("must be an RSA private key in PEM, unencrypted, PKCS #1 or PKCS #8")
	block, _ := pem.Decode([]byte(strings.ReplaceAll(text, `\n`, "\n")))
	if block == nil {
		der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return rsa.PrivateKey{}, refused
		}
		block = &pem.Block{Type: pkcs8Type, Bytes: der}
	}
	var parsed any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case pkcs8Type:
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return rsa.PrivateKey{}, refused
	}
	if key.N.BitLen() < minRSABits {
		return rsa.PrivateKey{}, fmt.Errorf("must be an RSA key of at least %d bits", minRSABits)
	}
	return *key, nil
}

// checkVAPID requires both keys of a pair or none, and that they match.
func (l *loader) checkVAPID(prefix string, v *VAPID) {
	publicName, privateName, subjectName := prefix+"PUBLIC_KEY", prefix+"PRIVATE_KEY", prefix+"SUBJECT"
	if v.Subject != "" && !strings.HasPrefix(v.Subject, "https://") && !mailtoPattern.MatchString(v.Subject) {
		l.report(subjectName, "must start with mailto: or https://")
	}
	switch {
	case v.PublicKey == "" && v.PrivateKey == "":
		return
	case v.PublicKey == "":
		l.report(publicName, "is required with "+privateName)
		return
	case v.PrivateKey == "":
		l.report(privateName, "is required with "+publicName)
		return
	}
	public, private := strings.TrimRight(v.PublicKey, "="), strings.TrimRight(v.PrivateKey.Reveal(), "=")
	scalar, err := base64.RawURLEncoding.DecodeString(private)
	if err != nil {
		l.report(privateName, "must be base64url")
		return
	}
	key, err := ecdh.P256().NewPrivateKey(scalar)
	if err != nil {
		l.report(privateName, "must be a P-256 private key of 32 bytes")
		return
	}
	point, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil || !bytes.Equal(point, key.PublicKey().Bytes()) {
		l.report(publicName, "is not the public key of "+privateName)
	}
	v.PublicKey, v.PrivateKey = public, Secret(private)
}

// Generate returns a complete set of new secrets as NAME=value lines that need no quotes: encryption key (its id is the date and four hex
// digits), settings key, webhook secret, EMR signing key as the base64 of PKCS #8, and VAPID pair. Random is crypto/rand.Reader outside tests;
// the RSA and P-256 keys always use the system's random source (see crypto/rsa.GenerateKey).
func Generate(random io.Reader, now time.Time) (block string, err error) {
	secrets := make([]byte, phi.KeySize+2+24+32)
	if _, err := io.ReadFull(random, secrets); err != nil {
		return "", fmt.Errorf("making secrets: %w", err)
	}
	encryption, rest := secrets[:phi.KeySize], secrets[phi.KeySize:]
	suffix, settings, webhook := rest[:2], rest[2:26], rest[26:]

	signing, err := rsa.GenerateKey(rand.Reader, minRSABits)
	if err != nil {
		return "", fmt.Errorf("making the EMR signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signing)
	if err != nil {
		return "", fmt.Errorf("encoding the EMR signing key: %w", err)
	}
	push, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("making the VAPID pair: %w", err)
	}

	var lines strings.Builder
	line := func(name, value string) { lines.WriteString(Prefix + name + "=" + value + "\n") }
	line("ENCRYPTION_KEYS", now.UTC().Format("20060102")+"-"+hex.EncodeToString(suffix)+":"+base64.StdEncoding.EncodeToString(encryption))
	line("SETTINGS_KEY", base64.RawURLEncoding.EncodeToString(settings)) // 24 bytes are 32 characters
	line("GATEWAY_WEBHOOK_SECRET", "whsec_"+base64.RawURLEncoding.EncodeToString(webhook))
	line("EMR_PRIVATE_KEY", base64.StdEncoding.EncodeToString(der))
	line("VAPID_PUBLIC_KEY", base64.RawURLEncoding.EncodeToString(push.PublicKey().Bytes()))
	line("VAPID_PRIVATE_KEY", base64.RawURLEncoding.EncodeToString(push.Bytes()))
	return lines.String(), nil
}
