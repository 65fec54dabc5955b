// Package config knows the settings: every name, its default and what it may be. They are read once from the
// environment (or from the file that <NAME>_FILE names), checked together, and handed over as one value, with
// every problem in one error. A value that came from outside is never quoted: the wrong variable may hold a secret.
//
// The package refuses to know what the settings are for. Nothing here opens a connection, and an integration
// without settings is not an error; it only reports that it is not configured.
package config

import (
	"crypto/rsa"
	"net/netip"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Prefix starts the name of every setting.
const Prefix = "VIGIL_"

// Settings is everything an operator can choose. It refuses to print.
//
// The tags are the reference: env (without the prefix), envDefault, doc, and the checks oneof, min, max and is
// (see check.go). A plain number in a duration whose name ends in _SECONDS, _MINUTES or _DAYS is in that unit.
// Source: docs/decisions/security.md, "Settings named by the spec".
type Settings struct {
	Environment Environment `env:"ENVIRONMENT" envDefault:"development" oneof:"development,staging,production" doc:"development, staging or production"`
	// PublicURL has no trailing slash. It is empty until ServedAt when the operator gave none.
	PublicURL        string         `env:"PUBLIC_URL" is:"origin" doc:"scheme and host under which the service is reached; required in production, else default http://<http addr>"`
	PracticeTimeZone string         `env:"PRACTICE_TIME_ZONE" envDefault:"America/New_York" doc:"IANA name of the practice's time zone"`
	PracticeLocation *time.Location `env:"-"`
	EncryptionKeys   []phi.Key      `env:"ENCRYPTION_KEYS" doc:"kid:base64(32 bytes)[,kid:base64...]; the first seals, all open"`
	SettingsKey      Secret         `env:"SETTINGS_KEY" doc:"32 characters that encrypt PocketBase's settings row"`
	LogLevel         string         `env:"LOG_LEVEL" envDefault:"info" oneof:"debug,info,warn,error" doc:"debug, info, warn or error"`
	LogFile          string         `env:"LOG_FILE" doc:"file for the log; empty = standard output"`
	FrontendResetURL string         `env:"FRONTEND_RESET_URL" is:"page" doc:"target of password links, ?token= is appended; default {public_url}/reset-password"`
	MetricsAddr      string         `env:"METRICS_ADDR" is:"addr" doc:"separate listener for /metrics; empty = off"`

	CORSAllowedOrigins  []string `env:"CORS_ALLOWED_ORIGINS" is:"origin" doc:"exact origins, comma separated"`
	TrustedProxyHeaders []string `env:"TRUSTED_PROXY_HEADERS" is:"header" doc:"headers a trusted proxy sets with the client's address"`

	Connections Connections

	Gateway    Gateway
	EMR        EMR
	FHIR       FHIR
	VAPID      VAPID `envPrefix:"VAPID_"`
	VAPIDDev   VAPID `envPrefix:"VAPID_DEV_"`
	WebPush    WebPush
	Outbound   Outbound
	Webhooks   Webhooks
	SMTP       SMTP
	RateLimits RateLimits
	TLS        TLS
	Auth       Auth
	OIDC       OIDC `envPrefix:"OIDC_"`
	Clinical   Clinical
	Billing    Billing
	Claims     Claims
	Practice   Practice
	Devices    Devices
	Audit      Audit
	Retention  Retention
	Backup     Backup
	Warehouse  Warehouse `envPrefix:"WAREHOUSE_"`

	warnings []string
}

// Environment is where the service runs.
type Environment string

// The environments.
const (
	Development Environment = "development"
	Staging     Environment = "staging"
	Production  Environment = "production"
)

// Connections is what one client, and all together, may hold open. Source: docs/decisions/limits.md, "Connections and deadlines".
type Connections struct {
	Max               int            `env:"MAX_CONNECTIONS" envDefault:"4096" min:"0" max:"1000000" doc:"open connections in all; 0 = no limit"`
	MaxPerAddress     int            `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"256" min:"0" max:"1000000" doc:"open connections of one address, and requests under way over them; 0 = no limit"`
	TrustedProxies    []netip.Prefix `env:"TRUSTED_PROXIES" doc:"addresses or ranges of proxies: not limited by address, and alone believed in TRUSTED_PROXY_HEADERS"`
	ReadHeaderTimeout time.Duration  `env:"READ_HEADER_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"TLS handshake and headers of a request must be there by then"`
	ReadBodyTimeout   time.Duration  `env:"READ_BODY_TIMEOUT" envDefault:"30s" min:"100ms" max:"1h" doc:"the body of a request must be there by then"`
}

// Gateway is the device vendor's side.
type Gateway struct {
	WebhookSecret         Secret         `env:"GATEWAY_WEBHOOK_SECRET" doc:"shared secret of webhook signatures"`
	WebhookSecretPrevious Secret         `env:"GATEWAY_WEBHOOK_SECRET_PREVIOUS" doc:"still accepted during a change of secret"`
	TelliSecret           Secret         `env:"GATEWAY_TELLI_SECRET" is:"shown" doc:"secret that Telli Health's webhooks show in a header"`
	TenoviSecret          Secret         `env:"GATEWAY_TENOVI_SECRET" is:"shown" doc:"secret that Tenovi's webhook shows in a header"`
	TimestampTolerance    time.Duration  `env:"GATEWAY_TIMESTAMP_TOLERANCE_SECONDS" envDefault:"1800" min:"0s" max:"24h" doc:"greatest age of a webhook; 0 = no age check"`
	AllowedCIDRs          []netip.Prefix `env:"GATEWAY_ALLOWED_CIDRS" doc:"source ranges of webhooks; empty = any"`
	DedupEnabled          bool           `env:"GATEWAY_DEDUP_ENABLED" envDefault:"true" doc:"false also skips the permanent duplicate check (tests only)"`
	DedupWindow           time.Duration  `env:"GATEWAY_DEDUP_WINDOW_SECONDS" envDefault:"300" min:"0s" max:"24h" doc:"memory of the fast duplicate cache"`
	APIURL                string         `env:"GATEWAY_API_URL" is:"base" doc:"kept for a gateway adapter"`
	APIKey                Secret         `env:"GATEWAY_API_KEY" doc:"kept for a gateway adapter"`
	APISecret             Secret         `env:"GATEWAY_API_SECRET" doc:"kept for a gateway adapter"`
	OrganizationID        string         `env:"GATEWAY_ORGANIZATION_ID" doc:"kept for a gateway adapter"`
}

// EMR is the practice's medical record system.
type EMR struct {
	Environment  string `env:"EMR_ENVIRONMENT" oneof:"staging,production" doc:"staging or production"`
	PracticeCode string `env:"EMR_PRACTICE_CODE" is:"code" doc:"part of the FHIR base address"`
	// FHIRBaseURL has no trailing slash and the practice code in its place.
	FHIRBaseURL        string          `env:"EMR_FHIR_BASE_URL" is:"base" doc:"FHIR base address; {practice_code} is replaced"`
	TokenURL           string          `env:"EMR_TOKEN_URL" is:"url" doc:"token address"`
	AuthorizeURL       string          `env:"EMR_AUTHORIZE_URL" is:"url" doc:"authorization address of the interactive flow"`
	ClientID           string          `env:"EMR_CLIENT_ID" doc:"client id"`
	ClientSecret       Secret          `env:"EMR_CLIENT_SECRET" doc:"client secret of the interactive flow"`
	ApplicationType    string          `env:"EMR_APPLICATION_TYPE" envDefault:"backend_service" oneof:"backend_service,interactive" doc:"backend_service, or interactive: deliveries too carry the token of the person who connected"`
	PrivateKey         *rsa.PrivateKey `env:"EMR_PRIVATE_KEY" json:"-" doc:"PEM or base64 of PKCS #8, RSA 2048 or larger; line breaks may be written as \\n"`
	PrivateKeyPrevious *rsa.PrivateKey `env:"EMR_PRIVATE_KEY_PREVIOUS" json:"-" doc:"still published during a change of key"`
	RateLimitPerSecond int             `env:"EMR_RATE_LIMIT_PER_SECOND" envDefault:"10" min:"0" max:"1000" doc:"all EMR calls; 0 = no pacing"`
	RetryDelays        []time.Duration `env:"EMR_RETRY_DELAYS" envDefault:"5m,15m,45m,2h,6h" doc:"the five automatic retries"`
	QuickRetryDelays   []time.Duration `env:"EMR_QUICK_RETRY_DELAYS" envDefault:"1s,2s,4s" doc:"at most three, inside one delivery"`
	ProbeInterval      time.Duration   `env:"EMR_PROBE_INTERVAL" envDefault:"15s" min:"10ms" max:"1h" doc:"while the EMR is down: between two looks whether it is back"`
	Timeout            time.Duration   `env:"EMR_TIMEOUT" envDefault:"30s" min:"1ms" max:"5m" doc:"one EMR call"`
	SearchCache        time.Duration   `env:"EMR_SEARCH_CACHE" envDefault:"60s" min:"0s" max:"24h" doc:"how long the EMR may answer a search with what it found before; 0 = never"`
	Scopes             []string        `env:"EMR_SCOPES" envDefault:"system/Patient.read system/Observation.write system/*.write" is:"systemscope" doc:"asked for by the service itself, space separated"`
	UserScopes         []string        `env:"EMR_USER_SCOPES" envDefault:"user/Patient.read user/Observation.write" is:"scope" doc:"asked for in the interactive flow, space separated"`
	ExtraScopes        []string        `env:"EMR_EXTRA_SCOPES" envDefault:"openid fhirUser offline_access" is:"scope" doc:"asked for in the interactive flow besides the user/ scopes, space separated"`
	ConnectReturnURL   string          `env:"EMR_CONNECT_RETURN_URL" is:"page" doc:"where the browser goes after the interactive flow; empty = JSON answer"`
	RequireSearchTerm  bool            `env:"EMR_REQUIRE_SEARCH_TERM" envDefault:"false" doc:"refuse an EMR patient search without a term"`
}

// FHIR is how observations become resources and are delivered.
type FHIR struct {
	MRNSystem           string        `env:"FHIR_MRN_SYSTEM" is:"uri" doc:"default {public_url}/fhir/identifier/mrn"`
	EMRIDSystem         string        `env:"FHIR_EMR_ID_SYSTEM" is:"uri" doc:"default {public_url}/fhir/identifier/emr"`
	AutoTransform       bool          `env:"FHIR_AUTO_TRANSFORM" envDefault:"true" doc:"transform every stored observation"`
	ConditionalCreate   bool          `env:"FHIR_CONDITIONAL_CREATE" envDefault:"true" doc:"send If-None-Exist"`
	SendDevice          bool          `env:"FHIR_SEND_DEVICE" envDefault:"true" doc:"what is known of the measuring device, as a Device resource inside its observations"`
	SendHeartRate       bool          `env:"FHIR_SEND_HEART_RATE" envDefault:"false" doc:"a pulse as a heart rate observation of its own, too"`
	SendMeanPressure    bool          `env:"FHIR_SEND_MEAN_BLOOD_PRESSURE" envDefault:"false" doc:"the mean blood pressure of each week"`
	ExportKeep          time.Duration `env:"FHIR_EXPORT_KEEP" envDefault:"24h" min:"1m" max:"720h" doc:"how long the files of a bulk export can be fetched"`
	ProcessPendingLimit int           `env:"FHIR_PROCESS_PENDING_LIMIT" envDefault:"100" min:"1" max:"1000" doc:"records per process-pending call"`
}

// VAPID is a key pair for Web Push, RFC 8292.
type VAPID struct {
	PublicKey  string `env:"PUBLIC_KEY" doc:"base64url, uncompressed P-256 point"`
	PrivateKey Secret `env:"PRIVATE_KEY" doc:"base64url, 32 bytes"`
	Subject    string `env:"SUBJECT" doc:"mailto: or https: contact; default mailto:postmaster@<public host>"`
}

// WebPush is where pushes may go. Entries are lower case; "*." matches any subdomain.
type WebPush struct {
	AllowedHosts    []string `env:"WEB_PUSH_ALLOWED_HOSTS" envDefault:"fcm.googleapis.com,updates.push.services.mozilla.com,*.push.apple.com,*.notify.windows.com" is:"hostpattern" doc:"push services for web_push"`
	DevAllowedHosts []string `env:"WEB_PUSH_DEV_ALLOWED_HOSTS" is:"hostport" doc:"host[:port] list for web_push_dev, plain http and loopback allowed; never in production"`
}

// Outbound is where requests go whose address somebody else chose.
type Outbound struct {
	DevAllowedHosts []string `env:"OUTBOUND_DEV_ALLOWED_HOSTS" is:"hostport" doc:"host[:port] list for webhooks and a client's jwks_url, plain http and loopback allowed; never in production"`
}

// Webhooks is how others are told what happens. Source: docs/decisions/webhooks.md, "Retries".
type Webhooks struct {
	RetryDelays  []time.Duration `env:"WEBHOOKS_RETRY_DELAYS" envDefault:"5s,5m,30m,2h,5h,10h,14h,20h,24h" doc:"the nine automatic retries of an event"`
	Timeout      time.Duration   `env:"WEBHOOKS_TIMEOUT" envDefault:"15s" min:"100ms" max:"25s" doc:"one request to a receiver"`
	DisableAfter time.Duration   `env:"WEBHOOKS_DISABLE_AFTER" envDefault:"120h" min:"1s" max:"8760h" doc:"a receiver that has taken nothing for so long is switched off"`
}

// SMTP is outgoing mail.
type SMTP struct {
	Host     string `env:"SMTP_HOST" is:"host" doc:"mail server; empty = no mail"`
	Port     int    `env:"SMTP_PORT" envDefault:"587" min:"1" max:"65535" doc:"its port"`
	Username string `env:"SMTP_USERNAME" doc:"account"`
	Password Secret `env:"SMTP_PASSWORD" doc:"its password"`
	From     string `env:"SMTP_FROM" is:"mailbox" doc:"sender, \"Name <address>\" or address"`
	TLS      bool   `env:"SMTP_TLS" envDefault:"false" doc:"true = TLS from the first byte, false = STARTTLS when offered"`
}

// RateLimits are the request limits. Source: docs/decisions/limits.md, "Which limit applies".
type RateLimits struct {
	User     RateLimit `env:"RATE_LIMIT_USER" envDefault:"1000/1h" doc:"per signed-in user; 0 = no limit"`
	Client   RateLimit `env:"RATE_LIMIT_CLIENT" envDefault:"600/1m" doc:"per client that signed in with credentials of its own; 0 = no limit, and none without one of users"`
	Anon     RateLimit `env:"RATE_LIMIT_ANON" envDefault:"100/1h" doc:"per address, public requests; 0 = no limit"`
	Auth     RateLimit `env:"RATE_LIMIT_AUTH" envDefault:"20/1m" doc:"per user or address, what sends mail or changes a factor; per address failed sign-ins; per account and address sign-ins; 0 = no limit"`
	SignIn   RateLimit `env:"RATE_LIMIT_SIGN_IN" envDefault:"300/1m" doc:"per address, sign-ins of all accounts; 0 = no limit, and none without one of RATE_LIMIT_AUTH"`
	Refresh  RateLimit `env:"RATE_LIMIT_REFRESH" envDefault:"120/1m" doc:"per address, swapping refresh tokens; 0 = no limit"`
	Webhook  RateLimit `env:"RATE_LIMIT_WEBHOOK" envDefault:"500/1h" doc:"per address, gateway webhook: about 2 x active devices per hour; 0 = no limit"`
	Realtime RateLimit `env:"RATE_LIMIT_REALTIME" envDefault:"120/1m" doc:"per address, opening streams; per user, subscribing them; 0 = no limit"`
}

// TLS is for deployments without a proxy in front.
type TLS struct {
	CertFile    string `env:"TLS_CERT_FILE" doc:"PEM certificate chain"`
	KeyFile     string `env:"TLS_KEY_FILE" doc:"PEM private key"`
	WebhookHost string `env:"WEBHOOK_HOST" is:"host" doc:"server name for which TLS 1.2 is allowed"`
}

// Auth is about signing in.
type Auth struct {
	TOTPIssuer         string        `env:"TOTP_ISSUER" envDefault:"RPM" is:"issuer" doc:"name shown in authenticator apps"`
	RequireTwoFactor   []authz.Role  `env:"REQUIRE_2FA_ROLES" doc:"roles that must set up a second factor"`
	FreshSignIn        time.Duration `env:"FRESH_SIGN_IN" envDefault:"10m" min:"0s" max:"24h" doc:"for how long after a sign-in second factors are added without the password; 0 = always asked"`
	SuperuserTwoFactor string        `env:"SUPERUSER_REQUIRE_2FA" oneof:"true,false" doc:"no superuser enters the dashboard without a second factor; default true in production, false elsewhere"`
	RefreshFamilyLife  time.Duration `env:"REFRESH_FAMILY_MAX_DAYS" envDefault:"7" min:"24h" max:"2160h" doc:"longest chain of refresh tokens, then login again"`
	IdleLogout         time.Duration `env:"IDLE_LOGOUT_MINUTES" envDefault:"0" min:"0s" max:"24h" doc:"refuse refresh after this time without a request; 0 = off"`
}

// Clinical is about readings, alerts and escalations.
type Clinical struct {
	MeasuredAtMaxFuture        time.Duration `env:"MEASURED_AT_MAX_FUTURE_SECONDS" envDefault:"300" min:"0s" max:"24h" doc:"how far ahead of the server a measurement time may be"`
	AutoResolveWarning         int           `env:"AUTO_RESOLVE_NORMAL_READINGS_WARNING" envDefault:"1" min:"1" max:"10" doc:"normal readings in a row that resolve a warning"`
	AutoResolveCritical        int           `env:"AUTO_RESOLVE_NORMAL_READINGS_CRITICAL" envDefault:"2" min:"1" max:"10" doc:"normal readings in a row that resolve a critical alert"`
	LateReadingAfter           time.Duration `env:"LATE_READING_AFTER" envDefault:"24h" min:"1m" max:"720h" doc:"age from which a reading that comes is late: its alert opens no escalation"`
	IrregularHeartbeats        int           `env:"IRREGULAR_HEARTBEATS" envDefault:"3" min:"0" max:"100" doc:"irregular-heartbeat flags within 7 days that raise a warning; 0 = never"`
	ConfirmReadings            time.Duration `env:"CONFIRM_READINGS" envDefault:"0" min:"0s" max:"1h" doc:"how long the escalation of a first severe blood pressure waits for the patient to measure again; 0 = not at all"`
	EscalationOverdueStat      time.Duration `env:"ESCALATION_OVERDUE_STAT" envDefault:"15m" min:"1m" max:"168h" doc:"a stat escalation not in progress by then is overdue"`
	EscalationOverdueUrgent    time.Duration `env:"ESCALATION_OVERDUE_URGENT" envDefault:"60m" min:"1m" max:"168h" doc:"the same for urgent"`
	EscalationOverdueRoutine   time.Duration `env:"ESCALATION_OVERDUE_ROUTINE" envDefault:"24h" min:"1m" max:"168h" doc:"the same for routine"`
	MissedDaysBeforeEscalation int           `env:"MISSED_DAYS_BEFORE_ESCALATION" envDefault:"3" min:"1" max:"30" doc:"missed days in a row that make an escalation"`
	SuspectWeightPercent       float64       `env:"SUSPECT_WEIGHT_PERCENT" envDefault:"10" min:"0" max:"100" doc:"a weight further than this share of the median of the last seven from it is suspect; the larger of this and the next holds, both 0 = off"`
	SuspectWeightKg            float64       `env:"SUSPECT_WEIGHT_KG" envDefault:"10" min:"0" max:"500" doc:"the same in kilograms"`
	RestrictToCareTeam         bool          `env:"RESTRICT_TO_CARE_TEAM" envDefault:"false" doc:"clinicians see only patients of their care teams"`

	EscalationTiersStat    []time.Duration `env:"ESCALATION_TIERS_STAT" envDefault:"15m,30m,60m" doc:"after how long, since it was opened, a stat escalation that nobody took goes to who is on call, to the clinical managers, and to them and the administrators; the last one again each time"`
	EscalationTiersUrgent  []time.Duration `env:"ESCALATION_TIERS_URGENT" envDefault:"1h,4h,8h" doc:"the same for urgent"`
	EscalationTiersRoutine []time.Duration `env:"ESCALATION_TIERS_ROUTINE" envDefault:"24h,48h,72h" doc:"the same for routine"`
}

// Billing is about CPT rules that a practice may choose.
type Billing struct {
	Enable2026Codes     bool          `env:"BILLING_ENABLE_2026_CODES" envDefault:"true" doc:"generate and accept 99445 and 99470 by the CMS rules"`
	MaxUnits99458       int           `env:"CPT_99458_MAX_UNITS" envDefault:"3" min:"1" max:"10" doc:"units of 99458 per month"`
	RequireConsent      bool          `env:"BILLING_REQUIRE_CONSENT" envDefault:"true" doc:"no entry without a consent in force"`
	RequireOrder        bool          `env:"BILLING_REQUIRE_ORDER" envDefault:"false" doc:"no entry is reviewed without an order of monitoring on record"`
	RequireSecondPerson bool          `env:"BILLING_REQUIRE_SECOND_PERSON" envDefault:"false" doc:"the creator of a manual entry cannot review it"`
	EscalationTimeCap   time.Duration `env:"ESCALATION_TIME_CAP_MINUTES" envDefault:"60" min:"0s" max:"4h" doc:"most time logged when an escalation is resolved"`
	Locality            string        `env:"PRACTICE_LOCALITY" doc:"the practice's locality in the fee schedule; empty = the nation's figures"`
	LiveContactFrom     string        `env:"BILLING_LIVE_CONTACT_FROM" envDefault:"2026-01-01" is:"day" doc:"from this day interactive time counts only with a live way of contact; before, without one, too"`
	TimeRule            string        `env:"BILLING_TIME_RULE" envDefault:"interactive" oneof:"interactive,care_management" doc:"which time counts for 99457, 99458 and 99470: live contact alone, or care management, too, in a month with live contact"`
	TimeRuleFrom        string        `env:"BILLING_TIME_RULE_FROM" envDefault:"2021-01-01" is:"day" doc:"months of service from this day on follow VIGIL_BILLING_TIME_RULE, earlier ones count live contact alone"`
	ReportCache         time.Duration `env:"REPORT_CACHE_MINUTES" envDefault:"15" min:"0s" max:"24h" doc:"how long a report is kept; 0 = off"`
}

// Devices is about device orders.
type Devices struct {
	ManagedMode         bool `env:"DEVICE_MANAGED_MODE" envDefault:"true" doc:"device orders and delivery estimates"`
	DeliveryWorkingDays int  `env:"DEVICE_DELIVERY_WORKING_DAYS" envDefault:"5" min:"0" max:"60" doc:"working days until a device arrives"`
}

// Audit is about the audit log.
type Audit struct {
	HeadPath string `env:"AUDIT_HEAD_PATH" doc:"file in a separate store to which the day's head hash is appended; empty = off"`
}

// Backup is where encrypted snapshots go, and how many stay.
type Backup struct {
	Folder           string   `env:"BACKUP_FOLDER" doc:"folder for backups; default {dir}/snapshots"`
	Keep             int      `env:"BACKUP_KEEP" envDefault:"14" min:"0" max:"3650" doc:"backups kept by the nightly job; 0 = no nightly backup"`
	Recipients       []string `env:"BACKUP_RECIPIENTS" is:"agerecipient" doc:"further age recipients (age1...) that can open backups"`
	S3Bucket         string   `env:"BACKUP_S3_BUCKET" doc:"S3-compatible bucket instead of the folder"`
	S3Region         string   `env:"BACKUP_S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Endpoint       string   `env:"BACKUP_S3_ENDPOINT" is:"base" doc:"address of the bucket's service"`
	S3AccessKey      string   `env:"BACKUP_S3_ACCESS_KEY" doc:"access key of the bucket"`
	S3Secret         Secret   `env:"BACKUP_S3_SECRET" doc:"secret of the access key"`
	S3Prefix         string   `env:"BACKUP_S3_PREFIX" doc:"the practice's part of a bucket that is shared"`
	S3ForcePathStyle bool     `env:"BACKUP_S3_FORCE_PATH_STYLE" envDefault:"false" doc:"bucket in the path instead of the host name"`
}

// Retention is how long data is kept; the minima are the law's. Source: docs/decisions/retention.md, "Retention".
type Retention struct {
	RecordYears    int           `env:"RETENTION_RECORD_YEARS" envDefault:"10" min:"10" max:"100" doc:"patient, clinical and billing records after the last activity"`
	AuditYears     int           `env:"RETENTION_AUDIT_YEARS" envDefault:"7" min:"6" max:"100" doc:"audit log"`
	WebhookRaw     time.Duration `env:"RETENTION_WEBHOOK_DAYS" envDefault:"90" min:"24h" max:"87600h" doc:"raw webhook payloads"`
	Quarantine     time.Duration `env:"RETENTION_QUARANTINE_DAYS" envDefault:"180" min:"24h" max:"87600h" doc:"quarantine items after closing"`
	PushDeliveries time.Duration `env:"RETENTION_PUSH_DELIVERY_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"push delivery records"`
	Notifications  time.Duration `env:"RETENTION_NOTIFICATION_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"in-app notifications after reading"`
	RefreshTokens  time.Duration `env:"RETENTION_REFRESH_TOKEN_DAYS" envDefault:"30" min:"24h" max:"87600h" doc:"refresh-token rows after expiry"`
	WebhooksOut    time.Duration `env:"RETENTION_WEBHOOK_DELIVERY_DAYS" envDefault:"90" min:"24h" max:"87600h" doc:"deliveries to webhooks that have ended"`
	PushTokens     time.Duration `env:"RETENTION_PUSH_TOKEN_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"inactive push tokens"`
	Changes        time.Duration `env:"RETENTION_CHANGES_DAYS" envDefault:"30" min:"168h" max:"87600h" doc:"what was changed, for those who follow it"`
}
