package config

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Generate makes a complete block of fresh secrets as NAME=value lines, ready for a shell or any environment file without quotes: encryption
// key (its id is the day and four hex digits), settings key, webhook secret, EMR signing key as the base64 of PKCS #8, and VAPID
// pair. Random is crypto/rand.Reader outside tests; the RSA and P-256 keys come from the system's own source
// whatever it is (see crypto/rsa.GenerateKey).
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
