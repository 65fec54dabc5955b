package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/config"
)

// Administrators see each setting with its source, and never a secret, whether it is given directly, by a file or inside an address.
func TestListedSettings(t *testing.T) {
	const secret = "Tr0ub4dor&3-horse-battery"
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	zone := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(zone, []byte("America/Denver\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := config.Load([]string{
		"VIGIL_SMTP_PASSWORD_FILE=" + file, "VIGIL_SMTP_HOST=mail.example.org", "VIGIL_GATEWAY_WEBHOOK_SECRET=" + secret,
		"VIGIL_PRACTICE_TIME_ZONE_FILE=" + zone, "VIGIL_SMTP_USERNAME= ", "VIGIL_SMTP_FROM=vigil@example.org",
		"VIGIL_MESSAGING_URL=https://texts.example.org/send?api_token=" + secret, "VIGIL_LOG_FILE=x://vigil:" + secret + "@a,x://b",
	})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]config.Setting{}
	for _, one := range s.List() {
		found[strings.TrimPrefix(one.Name, config.Prefix)] = one
		if text := fmt.Sprint(one); strings.Contains(text, "Tr0ub4dor") {
			t.Errorf("%s shows a secret", one.Name)
		}
	}
	for name, want := range map[string][3]string{ // value, default, source
		"SMTP_HOST":              {"mail.example.org", "", "environment"},
		"SMTP_PORT":              {"587", "587", "default"},
		"SMTP_USERNAME":          {"", "", "default"},
		"SMTP_PASSWORD":          {"", "", "file"},
		"GATEWAY_WEBHOOK_SECRET": {"", "", "environment"},
		"SETTINGS_KEY":           {"", "", "default"},
		"PRACTICE_TIME_ZONE":     {"America/Denver", "America/New_York", "file"},
		"MESSAGING_URL":          {"", "", "environment"},
		"LOG_FILE":               {"", "", "environment"},
	} {
		if one := found[name]; [3]string{one.Value, one.Default, one.Source} != want {
			t.Errorf("%s: %+v, want %v", name, one, want)
		}
	}
	for _, name := range []string{"SMTP_PASSWORD", "GATEWAY_WEBHOOK_SECRET", "SETTINGS_KEY", "ENCRYPTION_KEYS", "EMR_PRIVATE_KEY", "VAPID_PRIVATE_KEY", "MESSAGING_URL", "LOG_FILE"} {
		if !found[name].Secret {
			t.Errorf("%s is not marked as a secret", name)
		}
	}
}
