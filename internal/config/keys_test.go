package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
)

func TestEMRKeyForms(t *testing.T) {
	private := rsaKey(t, 2048)
	pkcs1 := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	for name, text := range map[string]string{
		"PKCS #1": pkcs1, "PKCS #8": pkcs8(t, private), "one line": strings.ReplaceAll(pkcs1, "\n", `\n`),
		"carriage returns": strings.ReplaceAll(pkcs1, "\n", "\r\n"),
	} {
		s := load(t, "VIGIL_EMR_PRIVATE_KEY="+text, "VIGIL_EMR_PRIVATE_KEY_PREVIOUS="+text)
		if !s.EMR.PrivateKey.Equal(private) || !s.EMR.PrivateKeyPrevious.Equal(private) {
			t.Errorf("%s: another key came out", name)
		}
		if err := s.EMR.PrivateKey.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"small":        {pkcs8(t, rsaKey(t, 1024)), "must be an RSA key of at least 2048 bits"},
		"other kind":   {pkcs8(t, elliptical), "must be an RSA private key in PEM"},
		"public half":  {string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&private.PublicKey)})), "must be an RSA private key in PEM"},
		"cut":          {pkcs1[:300] + "\n-----END RSA PRIVATE KEY-----\n", "must be an RSA private key in PEM"},
		"wrong header": {strings.ReplaceAll(pkcs1, "RSA PRIVATE", "PRIVATE"), "must be an RSA private key in PEM"},
	} {
		_, err := config.Load([]string{"VIGIL_EMR_PRIVATE_KEY=" + tc.text})
		if err == nil || !strings.HasPrefix(err.Error(), "VIGIL_EMR_PRIVATE_KEY: "+tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = config.Load([]string{"VIGIL_EMR_PRIVATE_KEY_PREVIOUS=" + pkcs1})
	if err == nil || !strings.HasPrefix(err.Error(), "VIGIL_EMR_PRIVATE_KEY: is required with") {
		t.Errorf("previous key alone: %v", err)
	}
}

func TestGenerate(t *testing.T) {
	now := time.Date(2026, 1, 15, 23, 30, 0, 0, time.FixedZone("", -5*3600))
	block, err := config.Generate(rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	want := "VIGIL_ENCRYPTION_KEYS VIGIL_SETTINGS_KEY VIGIL_GATEWAY_WEBHOOK_SECRET VIGIL_EMR_PRIVATE_KEY VIGIL_VAPID_PUBLIC_KEY VIGIL_VAPID_PRIVATE_KEY"
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("got %s", got)
	}

	s := load(t, lines...)
	if err := s.RequireEncryption(); err != nil {
		t.Error(err)
	}
	if id := s.EncryptionKeys[0].ID; !regexp.MustCompile(`^20260116-[0-9a-f]{4}$`).MatchString(id) {
		t.Errorf("key id %q", id)
	}
	if _, err := phi.NewKeyRing(s.EncryptionKeys...); err != nil {
		t.Error(err)
	}
	if !s.Gateway.Configured() || !s.VAPID.Configured() || s.EMR.PrivateKey == nil || len(s.SettingsKey) != 32 {
		t.Error("the block is not complete")
	}
	if !strings.HasPrefix(s.Gateway.WebhookSecret.Reveal(), "whsec_") || len(s.Warnings()) != 0 {
		t.Errorf("warnings %q", s.Warnings())
	}

	again, err := config.Generate(rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(again) {
		if strings.Contains(block, line) {
			t.Error("a secret came out twice")
		}
	}
	broken := errors.New("no randomness")
	if _, err := config.Generate(iotest.ErrReader(broken), now); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
