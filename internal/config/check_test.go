package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/config"
)

const (
	vapidPublic  = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8" // RFC 8291 appendix A
	vapidPrivate = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
)

func TestProblems(t *testing.T) {
	for _, tc := range []struct {
		name    string
		environ []string
		want    []string // the beginning of each line
	}{
		{"environment", []string{"ENVIRONMENT=Prod"}, []string{"VIGIL_ENVIRONMENT: must be development or staging or production"}},
		{"public url", []string{"PUBLIC_URL=rpm.example.org"}, []string{"VIGIL_PUBLIC_URL: must be an http or https address"}},
		{"public url path", []string{"PUBLIC_URL=https://example.org/rpm"}, []string{"VIGIL_PUBLIC_URL: must be scheme and host only"}},
		{"public url user", []string{"PUBLIC_URL=https://u:p@example.org"}, []string{"VIGIL_PUBLIC_URL: must be an http or https address without"}},
		{"zone", []string{"PRACTICE_TIME_ZONE=Mars/Olympus"}, []string{"VIGIL_PRACTICE_TIME_ZONE: must be an IANA name"}},
		{"machine's zone", []string{"PRACTICE_TIME_ZONE=Local"}, []string{"VIGIL_PRACTICE_TIME_ZONE: must be an IANA name"}},
		{"key length", []string{"ENCRYPTION_KEYS=a:AAAA"}, []string{"VIGIL_ENCRYPTION_KEYS: key 1 must be an id, a colon and 32 bytes"}},
		{"key without id", []string{"ENCRYPTION_KEYS=a:" + key32 + "," + key32}, []string{"VIGIL_ENCRYPTION_KEYS: key 2 must be"}},
		{"key with empty id", []string{"ENCRYPTION_KEYS=:" + key32}, []string{"VIGIL_ENCRYPTION_KEYS: key 1 needs an id"}},
		{"key id twice", []string{"ENCRYPTION_KEYS=a:" + key32 + ",a:" + key32}, []string{"VIGIL_ENCRYPTION_KEYS: key 2 repeats"}},
		{"no key at all", []string{"ENCRYPTION_KEYS=,"}, []string{"VIGIL_ENCRYPTION_KEYS: a key ring needs a key"}},
		{"settings key", []string{"SETTINGS_KEY=short"}, []string{"VIGIL_SETTINGS_KEY: must be exactly 32 characters"}},
		{"previous secret", []string{"GATEWAY_WEBHOOK_SECRET_PREVIOUS=x"}, []string{"VIGIL_GATEWAY_WEBHOOK_SECRET: is required with"}},
		{"vendor's secret", []string{"GATEWAY_TENOVI_SECRET=fifteen letters"}, []string{"VIGIL_GATEWAY_TENOVI_SECRET: must be at least 16 characters"}},
		{"secret of blanks", []string{"GATEWAY_TELLI_SECRET=x                "}, []string{"VIGIL_GATEWAY_TELLI_SECRET: must be at least 16 characters"}},
		{"tolerance", []string{"GATEWAY_TIMESTAMP_TOLERANCE_SECONDS=-1"}, []string{"VIGIL_GATEWAY_TIMESTAMP_TOLERANCE_SECONDS: must be a whole number"}},
		{"tolerance too long", []string{"GATEWAY_TIMESTAMP_TOLERANCE_SECONDS=86401"}, []string{"VIGIL_GATEWAY_TIMESTAMP_TOLERANCE_SECONDS: must be between 0s and 24h"}},
		{"range", []string{"GATEWAY_ALLOWED_CIDRS=10.0.0.0/8,10.0.0.0/33"}, []string{"VIGIL_GATEWAY_ALLOWED_CIDRS: entry 2 must be a range"}},
		{"boolean", []string{"DEVICE_MANAGED_MODE=maybe"}, []string{"VIGIL_DEVICE_MANAGED_MODE: must be true or false"}},
		{"practice code", []string{"EMR_FHIR_BASE_URL=https://e.example/{practice_code}"}, []string{"VIGIL_EMR_PRACTICE_CODE: is required"}},
		{"practice code form", []string{"EMR_PRACTICE_CODE=a/b"}, []string{"VIGIL_EMR_PRACTICE_CODE: must be letters"}},
		{"base query", []string{"EMR_FHIR_BASE_URL=https://e.example/r4?x=1"}, []string{"VIGIL_EMR_FHIR_BASE_URL: must be an address without query"}},
		{"token fragment", []string{"EMR_TOKEN_URL=https://e.example/t#x"}, []string{"VIGIL_EMR_TOKEN_URL: must be an address without a fragment"}},
		{"application type", []string{"EMR_APPLICATION_TYPE=native"}, []string{"VIGIL_EMR_APPLICATION_TYPE: must be backend_service"}},
		{"EMR environment", []string{"EMR_ENVIRONMENT=test"}, []string{"VIGIL_EMR_ENVIRONMENT: must be staging or production"}},
		{"pace", []string{"EMR_RATE_LIMIT_PER_SECOND=ten"}, []string{"VIGIL_EMR_RATE_LIMIT_PER_SECOND: must be a whole number"}},
		{"retries", []string{"EMR_RETRY_DELAYS=1m,2m"}, []string{"VIGIL_EMR_RETRY_DELAYS: must list five durations"}},
		{"eight retries of webhooks", []string{"WEBHOOKS_RETRY_DELAYS=1s,1s,1s,1s,1s,1s,1s,1s"}, []string{"VIGIL_WEBHOOKS_RETRY_DELAYS: must list nine durations"}},
		{"webhooks' patience", []string{"WEBHOOKS_TIMEOUT=26s"}, []string{"VIGIL_WEBHOOKS_TIMEOUT: must be between 100ms and 25s"}},
		{"retry form", []string{"EMR_RETRY_DELAYS=1m,2m,3m,4m,5"}, []string{"VIGIL_EMR_RETRY_DELAYS: must be a list of durations"}},
		{"two tiers", []string{"ESCALATION_TIERS_STAT=15m,30m"}, []string{"VIGIL_ESCALATION_TIERS_STAT: must list three durations"}},
		{"tiers out of order", []string{"ESCALATION_TIERS_URGENT=4h,1h,8h"}, []string{"VIGIL_ESCALATION_TIERS_URGENT: must list three durations"}},
		{"tiers without a wait", []string{"ESCALATION_TIERS_ROUTINE=0s,1h,2h"}, []string{"VIGIL_ESCALATION_TIERS_ROUTINE: must list three durations"}},
		{"quick retries", []string{"EMR_QUICK_RETRY_DELAYS=1s,1s,1s,1s"}, []string{"VIGIL_EMR_QUICK_RETRY_DELAYS: must list at most three"}},
		{"timeout", []string{"EMR_TIMEOUT=30"}, []string{"VIGIL_EMR_TIMEOUT: must be a duration"}},
		{"timeout zero", []string{"EMR_TIMEOUT=0s"}, []string{"VIGIL_EMR_TIMEOUT: must be between 1ms and 5m"}},
		{"search cache", []string{"EMR_SEARCH_CACHE=25h"}, []string{"VIGIL_EMR_SEARCH_CACHE: must be between 0s and 24h"}},
		{"scopes of a person", []string{"EMR_SCOPES=system/Patient.rs user/Observation.c"}, []string{"VIGIL_EMR_SCOPES: must be scopes of the form system/…"}},
		{"scope form", []string{"EMR_USER_SCOPES=a\\b"}, []string{"VIGIL_EMR_USER_SCOPES: must be OAuth scopes"}},
		{"EMR key", []string{"EMR_PRIVATE_KEY=not a key"}, []string{"VIGIL_EMR_PRIVATE_KEY: must be an RSA private key in PEM"}},
		{"VAPID half", []string{"VAPID_PUBLIC_KEY=" + vapidPublic}, []string{"VIGIL_VAPID_PRIVATE_KEY: is required with VIGIL_VAPID_PUBLIC_KEY"}},
		{"VAPID other half", []string{"VAPID_DEV_PRIVATE_KEY=" + vapidPrivate}, []string{"VIGIL_VAPID_DEV_PUBLIC_KEY: is required with VIGIL_VAPID_DEV_PRIVATE_KEY"}},
		{"VAPID mismatch", []string{"VAPID_PUBLIC_KEY=" + vapidPublic[:80] + "AAAAAAA", "VAPID_PRIVATE_KEY=" + vapidPrivate}, []string{"VIGIL_VAPID_PUBLIC_KEY: is not the public key of"}},
		{"VAPID form", []string{"VAPID_PUBLIC_KEY=" + vapidPublic, "VAPID_PRIVATE_KEY=!"}, []string{"VIGIL_VAPID_PRIVATE_KEY: must be base64url"}},
		{"VAPID length", []string{"VAPID_PUBLIC_KEY=" + vapidPublic, "VAPID_PRIVATE_KEY=AAAA"}, []string{"VIGIL_VAPID_PRIVATE_KEY: must be a P-256 private key"}},
		{"VAPID subject", []string{"VAPID_SUBJECT=someone"}, []string{"VIGIL_VAPID_SUBJECT: must start with mailto: or https://"}},
		{"push hosts", []string{"WEB_PUSH_ALLOWED_HOSTS=10.0.0.1"}, []string{"VIGIL_WEB_PUSH_ALLOWED_HOSTS: must be a list of host names"}},
		{"push host port", []string{"WEB_PUSH_ALLOWED_HOSTS=push.example:8443"}, []string{"VIGIL_WEB_PUSH_ALLOWED_HOSTS: must be"}},
		{"dev host port", []string{"WEB_PUSH_DEV_ALLOWED_HOSTS=localhost:99999"}, []string{"VIGIL_WEB_PUSH_DEV_ALLOWED_HOSTS: must be a list of host[:port]"}},
		{"dev hosts in production", []string{"ENVIRONMENT=production", "PUBLIC_URL=https://rpm.example.org", "WEB_PUSH_DEV_ALLOWED_HOSTS=localhost"}, []string{"VIGIL_WEB_PUSH_DEV_ALLOWED_HOSTS: must be empty in production"}},
		{"production without an address", []string{"ENVIRONMENT=production"}, []string{"VIGIL_PUBLIC_URL: is required with VIGIL_ENVIRONMENT=production"}},
		{"provider required", []string{"OIDC_REQUIRE=true"}, []string{"VIGIL_OIDC_ISSUER: is required with VIGIL_OIDC_REQUIRE"}},
		{"provider's client", []string{"OIDC_ISSUER=https://id.example.org", "OIDC_ROLE_MAP=a=nurse"}, []string{"VIGIL_OIDC_CLIENT_ID: is required with VIGIL_OIDC_ISSUER"}},
		{"provider's groups", []string{"OIDC_ISSUER=https://id.example.org", "OIDC_CLIENT_ID=vigil"}, []string{"VIGIL_OIDC_ROLE_MAP: is required with VIGIL_OIDC_ISSUER"}},
		{"patients of the provider", []string{"OIDC_ROLE_MAP=a=nurse,b=patient"}, []string{"VIGIL_OIDC_ROLE_MAP: must be group=role pairs"}},
		{"no role", []string{"OIDC_ROLE_MAP=nurse"}, []string{"VIGIL_OIDC_ROLE_MAP: must be group=role pairs"}},
		{"unknown role", []string{"OIDC_ROLE_MAP=a=janitor"}, []string{"VIGIL_OIDC_ROLE_MAP: must be group=role pairs"}},
		{"backup recipients", []string{"BACKUP_RECIPIENTS=age1wrong"}, []string{"VIGIL_BACKUP_RECIPIENTS: must be a list of age recipients"}},
		{"provider in the clear in production", []string{"ENVIRONMENT=production", "PUBLIC_URL=https://rpm.example.org", "OIDC_ISSUER=http://id.example.org", "OIDC_CLIENT_ID=vigil", "OIDC_ROLE_MAP=all=nurse"}, []string{"VIGIL_OIDC_ISSUER: must be https in production"}},
		{"dev hosts of keys in production", []string{"ENVIRONMENT=production", "PUBLIC_URL=https://rpm.example.org", "OUTBOUND_DEV_ALLOWED_HOSTS=localhost:9000"}, []string{"VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS: must be empty in production"}},
		{"sender", []string{"SMTP_HOST=mail"}, []string{"VIGIL_SMTP_FROM: is required with VIGIL_SMTP_HOST"}},
		{"sender form", []string{"SMTP_FROM=nobody"}, []string{"VIGIL_SMTP_FROM: must be a mail address"}},
		{"mail host", []string{"SMTP_HOST=smtp://mail", "SMTP_FROM=a@b.example"}, []string{"VIGIL_SMTP_HOST: must be a host name"}},
		{"mail port", []string{"SMTP_PORT=70000"}, []string{"VIGIL_SMTP_PORT: must be between 1 and 65535"}},
		{"limit", []string{"RATE_LIMIT_USER=1000"}, []string{"VIGIL_RATE_LIMIT_USER: must be requests per time"}},
		{"limit zero", []string{"RATE_LIMIT_USER=0/1h"}, []string{"VIGIL_RATE_LIMIT_USER: must be requests per time"}},
		{"limit window", []string{"RATE_LIMIT_USER=5/1500ms"}, []string{"VIGIL_RATE_LIMIT_USER: must be requests per time"}},
		{"origin star", []string{"CORS_ALLOWED_ORIGINS=*"}, []string{"VIGIL_CORS_ALLOWED_ORIGINS: must be an http or https"}},
		{"origin path", []string{"CORS_ALLOWED_ORIGINS=https://a.example/x"}, []string{"VIGIL_CORS_ALLOWED_ORIGINS: must be scheme and host only"}},
		{"header", []string{"TRUSTED_PROXY_HEADERS=X-Real-IP:"}, []string{"VIGIL_TRUSTED_PROXY_HEADERS: must be a list of header names"}},
		{"TLS half", []string{"TLS_CERT_FILE=/c.pem"}, []string{"VIGIL_TLS_KEY_FILE: is required with VIGIL_TLS_CERT_FILE"}},
		{"TLS absent", []string{"TLS_CERT_FILE=/absent/c", "TLS_KEY_FILE=/absent/k"}, []string{"VIGIL_TLS_CERT_FILE: and VIGIL_TLS_KEY_FILE must name"}},
		{"log level", []string{"LOG_LEVEL=trace"}, []string{"VIGIL_LOG_LEVEL: must be debug or info or warn or error"}},
		{"reset query", []string{"FRONTEND_RESET_URL=https://a.example/?x=1"}, []string{"VIGIL_FRONTEND_RESET_URL: must be an address without a query"}},
		{"metrics", []string{"METRICS_ADDR=9100"}, []string{"VIGIL_METRICS_ADDR: must be an address to listen on"}},
		{"identifier", []string{"FHIR_MRN_SYSTEM=mrn"}, []string{"VIGIL_FHIR_MRN_SYSTEM: must be an absolute URI"}},
		{"roles", []string{"REQUIRE_2FA_ROLES=admin,doctor"}, []string{"VIGIL_REQUIRE_2FA_ROLES: must be none or a list of roles: admin, clinical_manager"}},
		{"issuer", []string{"TOTP_ISSUER=a:b"}, []string{"VIGIL_TOTP_ISSUER: must be"}},
		{"days overflow", []string{"REFRESH_FAMILY_MAX_DAYS=999999999"}, []string{"VIGIL_REFRESH_FAMILY_MAX_DAYS: must be a whole number"}},
		{"legal minimum", []string{"RETENTION_AUDIT_YEARS=5", "RETENTION_RECORD_YEARS=9"}, []string{
			"VIGIL_RETENTION_RECORD_YEARS: must be between 10 and 100", "VIGIL_RETENTION_AUDIT_YEARS: must be between 6 and 100",
		}},
		{"many at once", []string{"LOG_LEVEL=x", "SETTINGS_KEY=x", "EMR_TIMEOUT=x", "RATE_LIMIT_ANON=x"}, []string{
			"VIGIL_EMR_TIMEOUT:", "VIGIL_RATE_LIMIT_ANON:", "VIGIL_LOG_LEVEL:", "VIGIL_SETTINGS_KEY:",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var environ []string
			for _, pair := range tc.environ {
				environ = append(environ, config.Prefix+pair)
			}
			_, err := config.Load(environ)
			if err == nil {
				t.Fatal("accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("got lines\n%v", err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got %q, want %q", lines[i], want)
				}
			}
		})
	}
}

// TestProblemsNeverQuote sets every setting to a marker that must not appear in a message.
func TestProblemsNeverQuote(t *testing.T) {
	const mark = "MARKED"
	for _, value := range []string{mark, mark + ":" + mark + "," + mark, "https://" + mark + ":" + mark + "@x/" + mark + "?" + mark + "#", mark + "\n" + mark} {
		var environ []string
		for _, setting := range config.Describe() {
			environ = append(environ, setting.Name+"="+value)
		}
		_, err := config.Load(environ)
		if err == nil {
			t.Fatal("accepted")
		}
		if strings.Contains(err.Error(), mark) {
			t.Errorf("a value is quoted:\n%v", err)
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, config.Prefix) {
				t.Errorf("line %q names no setting", line)
			}
		}
	}
}

func TestVAPIDPair(t *testing.T) {
	s := load(t, "VIGIL_VAPID_PUBLIC_KEY="+vapidPublic+"=", "VIGIL_VAPID_PRIVATE_KEY="+vapidPrivate+"=", "VIGIL_VAPID_SUBJECT=https://example.org")
	if !s.VAPID.Configured() || s.VAPID.PublicKey != vapidPublic || s.VAPID.PrivateKey.Reveal() != vapidPrivate {
		t.Error("the key pair of RFC 8291 was not accepted without padding")
	}
}

// TestNothingPrints passes settings full of secrets to everything that prints.
func TestNothingPrints(t *testing.T) {
	const mark = "MARKED"
	s := load(
		t,
		"VIGIL_SETTINGS_KEY="+strings.Repeat(mark, 5)+"xx", "VIGIL_GATEWAY_WEBHOOK_SECRET="+mark, "VIGIL_GATEWAY_API_SECRET="+mark,
		"VIGIL_SMTP_PASSWORD="+mark, "VIGIL_ENCRYPTION_KEYS=a:"+key32, "VIGIL_EMR_PRIVATE_KEY="+pkcs8(t, rsaKey(t, 2048)),
	)
	exponent := s.EMR.PrivateKey.D.String()
	for name, value := range map[string]any{
		"settings": s, "pointer": &s, "gateway": s.Gateway, "smtp": s.SMTP, "secret": s.SettingsKey, "emr": s.EMR, "keys": s.EncryptionKeys,
	} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", value)
		encoded, _ := json.Marshal(value) // refusing is as good
		printed := []string{log.String(), string(encoded)}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			printed = append(printed, fmt.Sprintf(verb, value))
		}
		for _, text := range printed {
			if strings.Contains(text, mark) || strings.Contains(text, "4d41524b4544") || strings.Contains(text, exponent) ||
				strings.Contains(text, key32) || strings.Contains(text, "0 0 0 0") {
				t.Errorf("%s leaks: %s", name, text)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	seen, given := map[string]bool{}, []string{}
	for _, setting := range config.Describe() {
		if seen[setting.Name] || !strings.HasPrefix(setting.Name, config.Prefix) || setting.Meaning == "" {
			t.Errorf("bad entry %+v", setting)
		}
		seen[setting.Name] = true
		if setting.Default != "" {
			given = append(given, setting.Name+"="+setting.Default)
		}
		for _, word := range []string{"SECRET", "PASSWORD", "PRIVATE", "SETTINGS_KEY", "API_KEY", "ENCRYPTION"} {
			if strings.Contains(setting.Name, word) && !setting.Secret {
				t.Errorf("%s must be a secret", setting.Name)
			}
		}
	}
	// Names that the specification defines.
	for _, name := range []string{
		"VIGIL_VAPID_DEV_PUBLIC_KEY", "VIGIL_TLS_CERT_FILE", "VIGIL_EMR_PRIVATE_KEY_PREVIOUS", "VIGIL_RATE_LIMIT_REALTIME",
		"VIGIL_CPT_99458_MAX_UNITS", "VIGIL_REQUIRE_2FA_ROLES", "VIGIL_AUTO_RESOLVE_NORMAL_READINGS_CRITICAL",
	} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
	explicit, implicit := load(t, given...), load(t)
	if difference := cmp.Diff(implicit.Retention, explicit.Retention) + cmp.Diff(implicit.RateLimits, explicit.RateLimits); difference != "" {
		t.Errorf("defaults given by hand differ: %s", difference)
	}
}
