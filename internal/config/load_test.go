package config_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/config"
)

const key32 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func load(t *testing.T, environ ...string) config.Settings {
	t.Helper()
	s, err := config.Load(environ)
	if err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return s
}

func TestDefaults(t *testing.T) {
	s := load(t, "PATH=/bin", "VIGIL_ENVIRONMENT=", "VIGIL_PRACTICE_TIME_ZONE= ")
	if s.Environment != config.Development || s.IsProduction() || s.PublicURL != "" || s.LogLevel != "info" {
		t.Errorf("general: %q %q %q", s.Environment, s.PublicURL, s.LogLevel)
	}
	if s.PracticeLocation.String() != "America/New_York" || s.PracticeTimeZone != "America/New_York" {
		t.Errorf("zone %v", s.PracticeLocation)
	}
	limits := config.RateLimits{
		User: config.RateLimit{Limit: 1000, Window: time.Hour}, Anon: config.RateLimit{Limit: 100, Window: time.Hour},
		Auth: config.RateLimit{Limit: 20, Window: time.Minute}, SignIn: config.RateLimit{Limit: 300, Window: time.Minute},
		Refresh: config.RateLimit{Limit: 120, Window: time.Minute}, Webhook: config.RateLimit{Limit: 500, Window: time.Hour},
		Client: config.RateLimit{Limit: 600, Window: time.Minute}, Realtime: config.RateLimit{Limit: 120, Window: time.Minute},
	}
	retention := config.Retention{
		RecordYears: 10, AuditYears: 7, WebhookRaw: 90 * day, Quarantine: 180 * day, PushDeliveries: 365 * day,
		Notifications: 365 * day, RefreshTokens: 30 * day, PushTokens: 365 * day, WebhooksOut: 90 * day, Changes: 30 * day,
	}
	for name, difference := range map[string]string{
		"rate limits": cmp.Diff(limits, s.RateLimits),
		"retention":   cmp.Diff(retention, s.Retention),
		"retries": cmp.Diff([]time.Duration{5 * time.Minute, 15 * time.Minute, 45 * time.Minute, 2 * time.Hour, 6 * time.Hour},
			s.EMR.RetryDelays),
		"quick retries": cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, s.EMR.QuickRetryDelays),
		"scopes":        cmp.Diff([]string{"openid", "fhirUser", "offline_access"}, s.EMR.ExtraScopes),
		"push hosts": cmp.Diff([]string{
			"fcm.googleapis.com", "updates.push.services.mozilla.com", "*.push.apple.com",
			"*.notify.windows.com",
		}, s.WebPush.AllowedHosts),
		"clinical": cmp.Diff(config.Clinical{
			MeasuredAtMaxFuture: 5 * time.Minute, AutoResolveWarning: 1, AutoResolveCritical: 2, LateReadingAfter: 24 * time.Hour, IrregularHeartbeats: 3,
			WarningPush: "trend", EarlyWarning: true,
			EscalationOverdueStat: 15 * time.Minute, EscalationOverdueUrgent: time.Hour, EscalationOverdueRoutine: day,
			MissedDaysBeforeEscalation: 3, SuspectWeightPercent: 10, SuspectWeightKg: 10,
			EscalationTiersStat:    []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour},
			EscalationTiersUrgent:  []time.Duration{time.Hour, 4 * time.Hour, 8 * time.Hour},
			EscalationTiersRoutine: []time.Duration{day, 2 * day, 3 * day},
		}, s.Clinical),
		"billing": cmp.Diff(config.Billing{
			Enable2026Codes: true, MaxUnits99458: 3, RequireConsent: true, EscalationTimeCap: time.Hour, ReportCache: 15 * time.Minute,
			LiveContactFrom: "2026-01-01", TimeRuleFrom: "2021-01-01",
		}, s.Billing),
		"auth": cmp.Diff(config.Auth{TOTPIssuer: "RPM", FreshSignIn: 10 * time.Minute, RefreshFamilyLife: 7 * day}, s.Auth),
		"webhooks": cmp.Diff(config.Webhooks{
			RetryDelays: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour},
			Timeout:     15 * time.Second, DisableAfter: 120 * time.Hour,
		}, s.Webhooks),
		"devices": cmp.Diff(config.Devices{ManagedMode: true, DeliveryWorkingDays: 5}, s.Devices),
		"fhir":    cmp.Diff(config.FHIR{AutoTransform: true, ConditionalCreate: true, SendDevice: true, SendInterpretation: true, ExportKeep: 24 * time.Hour, ProcessPendingLimit: 100}, s.FHIR),
	} {
		if difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
	if s.EMR.RateLimitPerSecond != 10 || s.EMR.Timeout != 30*time.Second || s.EMR.ApplicationType != "backend_service" {
		t.Errorf("EMR pace %d, timeout %v, type %q", s.EMR.RateLimitPerSecond, s.EMR.Timeout, s.EMR.ApplicationType)
	}
	if s.Gateway.TimestampTolerance != 30*time.Minute || !s.Gateway.DedupEnabled || s.Gateway.DedupWindow != 5*time.Minute {
		t.Errorf("gateway %+v", s.Gateway)
	}
	if s.Gateway.Configured() || s.EMR.Configured() || s.EMR.BackendConfigured() || s.EMR.InteractiveConfigured() ||
		s.SMTP.Configured() || s.VAPID.Configured() || s.VAPIDDev.Configured() || s.TLS.Configured() {
		t.Error("something is configured out of nothing")
	}
	if warnings := s.Warnings(); len(warnings) != 0 {
		t.Errorf("warnings %q", warnings)
	}
}

const day = 24 * time.Hour

func TestValues(t *testing.T) {
	s := load(
		t,
		"VIGIL_PUBLIC_URL=https://RPM.example.org/", "VIGIL_PRACTICE_TIME_ZONE=America/Los_Angeles",
		"VIGIL_ENCRYPTION_KEYS=new:"+key32+", old:"+key32, "VIGIL_SETTINGS_KEY="+strings.Repeat("k", 32),
		"VIGIL_GATEWAY_WEBHOOK_SECRET=whsec_test_2f6d0c", "VIGIL_GATEWAY_TIMESTAMP_TOLERANCE_SECONDS=0",
		"VIGIL_GATEWAY_ALLOWED_CIDRS=52.22.140.7/24, 10.0.0.1,2001:db8::/32",
		"VIGIL_EMR_PRACTICE_CODE=acme", "VIGIL_EMR_FHIR_BASE_URL=https://emr.example.com/{practice_code}/r4/",
		"VIGIL_EMR_RETRY_DELAYS=1s,2s,3s,4s,5s", "VIGIL_EMR_RATE_LIMIT_PER_SECOND=0", "VIGIL_EMR_CLIENT_ID= client ",
		"VIGIL_SMTP_HOST=Mail.example.org", "VIGIL_SMTP_FROM=Vigil <no-reply@example.org>", "VIGIL_SMTP_TLS=TRUE",
		"VIGIL_RATE_LIMIT_WEBHOOK=5000/30m", "VIGIL_RATE_LIMIT_ANON=0", "VIGIL_LOG_LEVEL=warn",
		"VIGIL_CORS_ALLOWED_ORIGINS=https://App.example.org https://b.example.org:8443/",
		"VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For", "VIGIL_REQUIRE_2FA_ROLES=admin,provider,admin",
		"VIGIL_IDLE_LOGOUT_MINUTES=15", "VIGIL_REFRESH_FAMILY_MAX_DAYS=2", "VIGIL_DEVICE_MANAGED_MODE=false",
		"VIGIL_WEB_PUSH_DEV_ALLOWED_HOSTS=localhost:9999,[::1]:80,127.0.0.1", "VIGIL_VAPID_DEV_SUBJECT=mailto:dev@example.org",
		"VIGIL_METRICS_ADDR=:9100", "VIGIL_FRONTEND_RESET_URL=https://app.example.org/#/reset",
	)
	for name, difference := range map[string]string{
		"public url": cmp.Diff("https://rpm.example.org", s.PublicURL),
		"zone":       cmp.Diff("America/Los_Angeles", s.PracticeLocation.String()),
		"key ids":    cmp.Diff([]string{"new", "old"}, []string{s.EncryptionKeys[0].ID, s.EncryptionKeys[1].ID}),
		"tolerance":  cmp.Diff(time.Duration(0), s.Gateway.TimestampTolerance),
		"ranges": cmp.Diff([]string{"52.22.140.0/24", "10.0.0.1/32", "2001:db8::/32"},
			texts(s.Gateway.AllowedCIDRs)),
		"base":      cmp.Diff("https://emr.example.com/acme/r4", s.EMR.FHIRBaseURL),
		"client id": cmp.Diff("client", s.EMR.ClientID),
		"pace":      cmp.Diff(0, s.EMR.RateLimitPerSecond),
		"retries": cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second},
			s.EMR.RetryDelays),
		"mail host": cmp.Diff("mail.example.org", s.SMTP.Host),
		"webhook":   cmp.Diff(config.RateLimit{Limit: 5000, Window: 30 * time.Minute}, s.RateLimits.Webhook),
		"anon":      cmp.Diff(true, s.RateLimits.Anon.IsUnlimited()),
		"origins":   cmp.Diff([]string{"https://app.example.org", "https://b.example.org:8443"}, s.CORSAllowedOrigins),
		"headers":   cmp.Diff([]string{"X-Forwarded-For"}, s.TrustedProxyHeaders),
		"roles":     cmp.Diff([]authz.Role{authz.Admin, authz.Provider}, s.Auth.RequireTwoFactor),
		"idle":      cmp.Diff(15*time.Minute, s.Auth.IdleLogout),
		"family":    cmp.Diff(2*day, s.Auth.RefreshFamilyLife),
		"dev hosts": cmp.Diff([]string{"localhost:9999", "[::1]:80", "127.0.0.1"}, s.WebPush.DevAllowedHosts),
		"reset url": cmp.Diff("https://app.example.org/#/reset", s.FrontendResetURL),
		"mrn":       cmp.Diff("https://rpm.example.org/fhir/identifier/mrn", s.FHIR.MRNSystem),
		"emr id":    cmp.Diff("https://rpm.example.org/fhir/identifier/emr", s.FHIR.EMRIDSystem),
		"subject":   cmp.Diff("mailto:postmaster@rpm.example.org", s.VAPID.Subject),
		"subject 2": cmp.Diff("mailto:dev@example.org", s.VAPIDDev.Subject),
		"level":     cmp.Diff(slog.LevelWarn, s.SlogLevel()),
	} {
		if difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
	if !s.SMTP.TLS || s.Devices.ManagedMode || !s.Gateway.Configured() || !s.SMTP.Configured() {
		t.Error("a switch was not read")
	}
	if s.Gateway.WebhookSecret.Reveal() != "whsec_test_2f6d0c" {
		t.Error("secrets come back as given")
	}
	if !s.EMR.Configured() || s.EMR.BackendConfigured() || s.EMR.InteractiveConfigured() {
		t.Error("client id and base address configure the EMR, but neither flow")
	}
}

func texts(prefixes []netip.Prefix) []string {
	var all []string
	for _, prefix := range prefixes {
		all = append(all, prefix.String())
	}
	return all
}

func TestWithPublicURL(t *testing.T) {
	s := load(t).WithPublicURL("http://127.0.0.1:8090/")
	if s.PublicURL != "http://127.0.0.1:8090" || s.FrontendResetURL != "http://127.0.0.1:8090/reset-password" {
		t.Errorf("got %q and %q", s.PublicURL, s.FrontendResetURL)
	}
	s = load(t, "VIGIL_PUBLIC_URL=https://a.example", "VIGIL_FHIR_MRN_SYSTEM=urn:oid:1.2.3").WithPublicURL("http://127.0.0.1:8090")
	if s.PublicURL != "https://a.example" || s.FHIR.MRNSystem != "urn:oid:1.2.3" {
		t.Errorf("what the operator chose was replaced: %q, %q", s.PublicURL, s.FHIR.MRNSystem)
	}
}

func TestRequireEncryption(t *testing.T) {
	err := load(t).RequireEncryption()
	if err == nil || !strings.Contains(err.Error(), "VIGIL_ENCRYPTION_KEYS") || !strings.Contains(err.Error(), "vigil keys generate") {
		t.Errorf("unexpected error %v", err)
	}
	if err := load(t, "VIGIL_ENCRYPTION_KEYS=a:"+key32).RequireEncryption(); err != nil {
		t.Errorf("unexpected error %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := load(
		t,
		"VIGIL_GATEWAY_WEBHOOK_SECRET_FILE="+file("secret", "from a file\n"), "VIGIL_GATEWAY_WEBHOOK_SECRET=",
		"VIGIL_RATE_LIMIT_USER_FILE="+file("limit", "7/1m\r\n"),
		"VIGIL_ENCRYPTION_KEYS_FILE="+file("keys", "a:"+key32+"\nb:"+key32+"\n"),
		"VIGIL_EMR_PRIVATE_KEY_FILE="+file("pem", pkcs8(t, rsaKey(t, 2048))),
		"VIGIL_SMTP_PASSWORD_FILE=",
	)
	if got := s.Gateway.WebhookSecret.Reveal(); got != "from a file" {
		t.Errorf("secret %q", got)
	}
	if s.RateLimits.User.Limit != 7 || len(s.EncryptionKeys) != 2 || s.EMR.PrivateKey == nil || s.SMTP.Password != "" {
		t.Error("a file was not read")
	}

	absent := filepath.Join(dir, "MARKED")
	_, err := config.Load([]string{
		"VIGIL_SETTINGS_KEY_FILE=" + absent,
		"VIGIL_SMTP_PASSWORD_FILE=" + dir,
		"VIGIL_SMTP_USERNAME=MARKED", "VIGIL_SMTP_USERNAME_FILE=" + file("user", "MARKED"),
	})
	want := config.Problems{
		"VIGIL_SETTINGS_KEY_FILE: cannot be read: no such file or directory",
		"VIGIL_SMTP_USERNAME: is set twice, also as VIGIL_SMTP_USERNAME_FILE",
		"VIGIL_SMTP_PASSWORD_FILE: cannot be read: is a directory",
	}
	if difference := cmp.Diff(error(want), err); difference != "" {
		t.Error(difference)
	}
}

func TestTLSPair(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	private := rsaKey(t, 2048)
	template := &x509.Certificate{SerialNumber: private.N, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key: pkcs8(t, private),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s := load(t, "VIGIL_TLS_CERT_FILE="+cert, "VIGIL_TLS_KEY_FILE="+key); !s.TLS.Configured() {
		t.Error("a good pair was not taken")
	}
	if _, err := config.Load([]string{"VIGIL_TLS_CERT_FILE=" + key, "VIGIL_TLS_KEY_FILE=" + cert}); err == nil {
		t.Error("a swapped pair was taken")
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"typo", []string{"VIGIL_PUBLIC_ULR=x", "VIGIL_TLS_CERT=x", "OTHER=x"}, []string{
			"VIGIL_PUBLIC_ULR is not a setting; check its spelling", "VIGIL_TLS_CERT is not a setting; check its spelling",
		}},
		{"production", []string{
			"VIGIL_ENVIRONMENT=production", "VIGIL_PUBLIC_URL=http://rpm.example.org", "VIGIL_GATEWAY_DEDUP_ENABLED=0",
			"VIGIL_FHIR_MRN_SYSTEM=http://example.org/mrn",
		}, []string{
			"VIGIL_PUBLIC_URL is plain http in production",
			"VIGIL_SETTINGS_KEY is not set: PocketBase keeps its settings in the clear",
			"VIGIL_GATEWAY_DEDUP_ENABLED is off in production: repeated events are stored again",
		}},
		{"half an EMR", []string{"VIGIL_EMR_CLIENT_ID=c", "VIGIL_EMR_TOKEN_URL=http://localhost/token"}, []string{
			"delivery to the EMR is off until these are set: VIGIL_EMR_FHIR_BASE_URL, VIGIL_EMR_PRIVATE_KEY",
		}},
		{"staging over http", []string{"VIGIL_ENVIRONMENT=staging", "VIGIL_PUBLIC_URL=http://rpm.example.org"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := load(t, tc.environ...).Warnings(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pkcs8(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
