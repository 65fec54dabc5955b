// Package config defines the settings: names, defaults and validation. It reads them once from the environment, or from the file that
// <NAME>_FILE names, validates them together and returns one value, or one error with every problem. It never quotes a value, because a
// misplaced one may be a secret.
//
// The package opens no connections. A missing integration is not an error; its Configured method returns false.
package config

import (
	"crypto/rsa"
	"net/netip"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Prefix begins the name of every setting.
const Prefix = "VIGIL_"

// Settings holds everything an operator can configure. It refuses to print.
//
// The tags are the reference: env (without the prefix), envDefault, doc, and the checks oneof, min, max and is (see check.go). A plain number in
// a duration with a name ending in _SECONDS, _MINUTES or _DAYS is in that unit. Source: docs/decisions/security.md, "Settings named by the
// spec".
type Settings struct {
	Environment Environment `env:"ENVIRONMENT" envDefault:"development" oneof:"development,staging,production" doc:"development, staging or production"`
	// PublicURL has no trailing slash. If it is not set, it stays empty until WithPublicURL.
	PublicURL        string         `env:"PUBLIC_URL" is:"origin" doc:"scheme and host under which callers reach the service; required in production, else default http://<http addr>"`
	PracticeTimeZone string         `env:"PRACTICE_TIME_ZONE" envDefault:"America/New_York" doc:"IANA name of the practice's time zone"`
	PracticeLocation *time.Location `env:"-"`
	EncryptionKeys   []phi.Key      `env:"ENCRYPTION_KEYS" doc:"kid:base64(32 bytes)[,kid:base64...]; the first seals, all open"`
	SettingsKey      Secret         `env:"SETTINGS_KEY" doc:"32 characters that encrypt PocketBase's settings row"`
	LogLevel         string         `env:"LOG_LEVEL" envDefault:"info" oneof:"debug,info,warn,error" doc:"debug, info, warn or error"`
	LogFile          string         `env:"LOG_FILE" doc:"file for the log; empty = standard output"`
	FrontendResetURL string         `env:"FRONTEND_RESET_URL" is:"page" doc:"target of password links, ?token= is appended. Default: {public_url}/reset-password"`
	MetricsAddr      string         `env:"METRICS_ADDR" is:"addr" doc:"separate listener for /metrics; empty = off"`

	CORSAllowedOrigins  []string `env:"CORS_ALLOWED_ORIGINS" is:"origin" doc:"exact origins of other hosts, comma separated"`
	FrameAncestors      []string `env:"FRAME_ANCESTORS" is:"framer" doc:"origins of the sites that may show the console in a frame, such as an EMR's, comma separated; https://*.emr.example allows each host below. Empty = none"`
	TrustedProxyHeaders []string `env:"TRUSTED_PROXY_HEADERS" is:"header" doc:"headers in which a trusted proxy passes the client's address, such as X-Forwarded-For; leave empty without a proxy"`

	Connections Connections

	Gateway    Gateway
	Events     Events
	Lease      Lease
	Center     Center
	EMR        EMR
	FHIR       FHIR
	VAPID      VAPID `envPrefix:"VAPID_"`
	VAPIDDev   VAPID `envPrefix:"VAPID_DEV_"`
	WebPush    WebPush
	Outbound   Outbound
	Webhooks   Webhooks
	SMTP       SMTP
	Messaging  Messaging
	Portal     Portal
	Display    Display
	RateLimits RateLimits
	TLS        TLS
	Auth       Auth
	OIDC       OIDC  `envPrefix:"OIDC_"`
	SMART      SMART `envPrefix:"SMART_"`
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
	list     []Setting
}

// Environment is the deployment environment.
type Environment string

// The environments.
const (
	Development Environment = "development"
	Staging     Environment = "staging"
	Production  Environment = "production"
)

// Connections limits open connections per client and in total. Source: docs/decisions/limits.md, "Connections and deadlines".
type Connections struct {
	Max               int            `env:"MAX_CONNECTIONS" envDefault:"4096" min:"0" max:"1000000" doc:"open connections in total; 0 is no limit"`
	MaxPerAddress     int            `env:"MAX_CONNECTIONS_PER_ADDRESS" envDefault:"256" min:"0" max:"1000000" doc:"open connections of one address (IPv6: /64), and concurrent requests over them; 0 is no limit"`
	TrustedProxies    []netip.Prefix `env:"TRUSTED_PROXIES" doc:"addresses or ranges of your proxies: only they may set VIGIL_TRUSTED_PROXY_HEADERS, and their connections are not limited by address"`
	ReadHeaderTimeout time.Duration  `env:"READ_HEADER_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"limit for a TLS handshake and for a request's headers"`
	ReadBodyTimeout   time.Duration  `env:"READ_BODY_TIMEOUT" envDefault:"30s" min:"100ms" max:"1h" doc:"limit for a request's body"`
}

// Gateway configures the device gateways' webhooks.
type Gateway struct {
	WebhookSecret         Secret         `env:"GATEWAY_WEBHOOK_SECRET" doc:"shared secret of webhook signatures"`
	WebhookSecretPrevious Secret         `env:"GATEWAY_WEBHOOK_SECRET_PREVIOUS" doc:"the former secret, still accepted during a change"`
	TelliSecret           Secret         `env:"GATEWAY_TELLI_SECRET" is:"shown" doc:"secret in a header of Telli Health's webhooks"`
	TenoviSecret          Secret         `env:"GATEWAY_TENOVI_SECRET" is:"shown" doc:"secret in a header of Tenovi's webhook"`
	TimestampTolerance    time.Duration  `env:"GATEWAY_TIMESTAMP_TOLERANCE_SECONDS" envDefault:"1800" min:"0s" max:"24h" doc:"maximum age of a webhook; 0 is no age check"`
	AllowedCIDRs          []netip.Prefix `env:"GATEWAY_ALLOWED_CIDRS" doc:"source ranges of every vendor's webhooks; empty is any"`
	DedupEnabled          bool           `env:"GATEWAY_DEDUP_ENABLED" envDefault:"true" doc:"false also skips the permanent duplicate check (tests only)"`
	DedupWindow           time.Duration  `env:"GATEWAY_DEDUP_WINDOW_SECONDS" envDefault:"300" min:"0s" max:"24h" doc:"no effect: a permanent key recognizes duplicates at any time"`
	APIURL                string         `env:"GATEWAY_API_URL" is:"base" doc:"reserved for a gateway adapter"`
	APIKey                Secret         `env:"GATEWAY_API_KEY" doc:"reserved for a gateway adapter"`
	APISecret             Secret         `env:"GATEWAY_API_SECRET" doc:"reserved for a gateway adapter"`
	OrganizationID        string         `env:"GATEWAY_ORGANIZATION_ID" doc:"reserved for a gateway adapter"`
}

// EMR configures the practice's electronic medical record system.
type EMR struct {
	Environment  string `env:"EMR_ENVIRONMENT" oneof:"staging,production" doc:"staging or production"`
	PracticeCode string `env:"EMR_PRACTICE_CODE" is:"code" doc:"part of the FHIR base address"`
	// FHIRBaseURL has no trailing slash and includes the practice code.
	FHIRBaseURL        string          `env:"EMR_FHIR_BASE_URL" is:"base" doc:"FHIR base address; {practice_code} is replaced"`
	TokenURL           string          `env:"EMR_TOKEN_URL" is:"url" doc:"token address; {practice_code} is replaced"`
	AuthorizeURL       string          `env:"EMR_AUTHORIZE_URL" is:"url" doc:"authorization address of the interactive flow; {practice_code} is replaced"`
	ClientID           string          `env:"EMR_CLIENT_ID" doc:"client id"`
	ClientSecret       Secret          `env:"EMR_CLIENT_SECRET" doc:"client secret: of the interactive flow, and of the service with client_secret_basic"`
	Auth               string          `env:"EMR_AUTH" envDefault:"private_key_jwt" oneof:"private_key_jwt,client_secret_basic" doc:"how the service signs in at the token address: private_key_jwt, an assertion signed with the private key, or client_secret_basic, the client secret by HTTP Basic"`
	ApplicationType    string          `env:"EMR_APPLICATION_TYPE" envDefault:"backend_service" oneof:"backend_service,interactive" doc:"backend_service, or interactive: deliveries use the token of the user who connected"`
	PrivateKey         *rsa.PrivateKey `env:"EMR_PRIVATE_KEY" json:"-" doc:"PEM or base64 of PKCS #8, RSA 2048 or larger; line breaks may be written as \\n"`
	PrivateKeyPrevious *rsa.PrivateKey `env:"EMR_PRIVATE_KEY_PREVIOUS" json:"-" doc:"the former key, still published during a change"`
	RateLimitPerSecond int             `env:"EMR_RATE_LIMIT_PER_SECOND" envDefault:"10" min:"0" max:"1000" doc:"all EMR requests together; 0 is no rate limit"`
	RetryDelays        []time.Duration `env:"EMR_RETRY_DELAYS" envDefault:"5m,15m,45m,2h,6h" doc:"the five automatic retries; exactly five entries"`
	QuickRetryDelays   []time.Duration `env:"EMR_QUICK_RETRY_DELAYS" envDefault:"1s,2s,4s" doc:"retries inside one delivery; at most three entries"`
	ProbeInterval      time.Duration   `env:"EMR_PROBE_INTERVAL" envDefault:"15s" min:"10ms" max:"1h" doc:"time between probes while the circuit breaker is open, plus or minus a fifth"`
	Timeout            time.Duration   `env:"EMR_TIMEOUT" envDefault:"30s" min:"1ms" max:"5m" doc:"one EMR request"`
	Delivery           string          `env:"EMR_DELIVERY" envDefault:"auto" oneof:"auto,observation,document,both" doc:"how readings are sent: auto, as the EMR's CapabilityStatement allows; observation, always as Observations; document, in a report of each month; or both"`
	DocumentType       string          `env:"EMR_DOCUMENT_TYPE" envDefault:"53576-5" doc:"LOINC code of the type of documents; the default is a personal health monitoring report"`
	SearchCache        time.Duration   `env:"EMR_SEARCH_CACHE" envDefault:"60s" min:"0s" max:"24h" doc:"how long the EMR may answer a search from its cache; 0 = never"`
	Scopes             []string        `env:"EMR_SCOPES" envDefault:"system/Patient.read system/Observation.write system/*.write" is:"systemscope" doc:"scopes that the service requests for itself, space separated"`
	UserScopes         []string        `env:"EMR_USER_SCOPES" envDefault:"user/Patient.read user/Observation.write" is:"scope" doc:"scopes requested in the interactive flow, space separated"`
	ExtraScopes        []string        `env:"EMR_EXTRA_SCOPES" envDefault:"openid fhirUser offline_access" is:"scope" doc:"scopes requested in the interactive flow in addition to the user/ scopes, space separated"`
	ConnectReturnURL   string          `env:"EMR_CONNECT_RETURN_URL" is:"page" doc:"where the browser goes after the interactive flow; empty is a JSON answer"`
	RequireSearchTerm  bool            `env:"EMR_REQUIRE_SEARCH_TERM" envDefault:"false" doc:"reject an EMR search without a term"`
	Context            bool            `env:"EMR_CONTEXT" envDefault:"false" doc:"read conditions, medicines, encounters, orders, coverage and allergies of linked patients, and request the scopes for it"`
	ContextStale       time.Duration   `env:"EMR_CONTEXT_STALE" envDefault:"4h" min:"1m" max:"168h" doc:"age at which a chart that is opened is read again"`
	AutoHold           bool            `env:"EMR_AUTO_HOLD" envDefault:"false" doc:"set a patient hold during an inpatient stay that the chart shows"`
}

// signsInBySecret reports whether the service signs in with its client secret and not with its key.
func (e EMR) signsInBySecret() bool { return e.Auth == "client_secret_basic" }

// FHIR configures the FHIR form of observations and their delivery.
type FHIR struct {
	MRNSystem           string        `env:"FHIR_MRN_SYSTEM" is:"uri" doc:"identifier system of the MRN. Default: {public_url}/fhir/identifier/mrn"`
	EMRIDSystem         string        `env:"FHIR_EMR_ID_SYSTEM" is:"uri" doc:"identifier system of the EMR's id. Default: {public_url}/fhir/identifier/emr"`
	AutoTransform       bool          `env:"FHIR_AUTO_TRANSFORM" envDefault:"true" doc:"create the FHIR form of every observation when it is stored"`
	ConditionalCreate   bool          `env:"FHIR_CONDITIONAL_CREATE" envDefault:"true" doc:"send If-None-Exist; turn off only for an EMR that rejects it"`
	SendDevice          bool          `env:"FHIR_SEND_DEVICE" envDefault:"true" doc:"include the measuring device as a Device resource inside its observations"`
	SendInterpretation  bool          `env:"FHIR_SEND_INTERPRETATION" envDefault:"true" doc:"send the interpretation of each value (N, H, HH, L, LL) and its reference range, by the bounds at evaluation"`
	SendHeartRate       bool          `env:"FHIR_SEND_HEART_RATE" envDefault:"false" doc:"also send a pulse as a separate heart rate observation"`
	SendMeanPressure    bool          `env:"FHIR_SEND_MEAN_BLOOD_PRESSURE" envDefault:"false" doc:"send the mean blood pressure of each week, Monday to Sunday"`
	ExportKeep          time.Duration `env:"FHIR_EXPORT_KEEP" envDefault:"24h" min:"1m" max:"720h" doc:"how long the files of a bulk export can be downloaded; then they are removed"`
	ProcessPendingLimit int           `env:"FHIR_PROCESS_PENDING_LIMIT" envDefault:"100" min:"1" max:"1000" doc:"records per call of process-pending"`
}

// VAPID is a key pair for Web Push (RFC 8292).
type VAPID struct {
	PublicKey  string `env:"PUBLIC_KEY" doc:"base64url, uncompressed P-256 point"`
	PrivateKey Secret `env:"PRIVATE_KEY" doc:"base64url, 32 bytes"`
	Subject    string `env:"SUBJECT" doc:"mailto: or https: contact; default mailto:postmaster@<public host>"`
}

// WebPush lists the allowed push services. Entries are in lower case; "*." matches any subdomain.
type WebPush struct {
	AllowedHosts    []string `env:"WEB_PUSH_ALLOWED_HOSTS" envDefault:"fcm.googleapis.com,updates.push.services.mozilla.com,*.push.apple.com,*.notify.windows.com" is:"hostpattern" doc:"push services that web_push may use; *. matches any subdomain"`
	DevAllowedHosts []string `env:"WEB_PUSH_DEV_ALLOWED_HOSTS" is:"hostport" doc:"host[:port] list for web_push_dev, where plain http and loopback are allowed; must be empty in production"`
}

// Outbound configures requests to addresses that users or clients choose.
type Outbound struct {
	DevAllowedHosts []string `env:"OUTBOUND_DEV_ALLOWED_HOSTS" is:"hostport" doc:"host[:port] list for webhook endpoints and a client's jwks_url, where plain http and loopback are allowed; must be empty in production"`
}

// Webhooks configures event deliveries to webhook endpoints. Source: docs/decisions/webhooks.md, "Retries".
type Webhooks struct {
	RetryDelays  []time.Duration `env:"WEBHOOKS_RETRY_DELAYS" envDefault:"5s,5m,30m,2h,5h,10h,14h,20h,24h" doc:"waits before the nine automatic retries of an event; exactly nine entries"`
	Timeout      time.Duration   `env:"WEBHOOKS_TIMEOUT" envDefault:"15s" min:"100ms" max:"25s" doc:"one request to a receiver; at most 25s"`
	DisableAfter time.Duration   `env:"WEBHOOKS_DISABLE_AFTER" envDefault:"120h" min:"1s" max:"8760h" doc:"an endpoint that has accepted nothing for this long is disabled, and administrators are notified"`
}

// SMTP configures outgoing mail.
type SMTP struct {
	Host     string `env:"SMTP_HOST" is:"host" doc:"mail server; empty is no mail"`
	Port     int    `env:"SMTP_PORT" envDefault:"587" min:"1" max:"65535" doc:"its port"`
	Username string `env:"SMTP_USERNAME" doc:"account"`
	Password Secret `env:"SMTP_PASSWORD" doc:"its password"`
	From     string `env:"SMTP_FROM" is:"mailbox" doc:"sender, \"Name <address>\" or address"`
	TLS      bool   `env:"SMTP_TLS" envDefault:"false" doc:"true: TLS from the first byte; false: STARTTLS when offered"`
}

// Messaging configures texts and calls to patients. Source: docs/decisions/messages.md, "Providers".
type Messaging struct {
	Provider   string `env:"MESSAGING" envDefault:"none" oneof:"none,twilio,http,file" doc:"how messages to patients are sent: none; twilio, Twilio's HTTP interface; http, JSON signed by Standard Webhooks; file, one line of JSON each"`
	URL        string `env:"MESSAGING_URL" doc:"twilio: base address before /2010-04-01, default https://api.twilio.com; http: the address that messages are posted to; file: the path"`
	Account    string `env:"MESSAGING_ACCOUNT" doc:"twilio: the account SID"`
	Secret     Secret `env:"MESSAGING_SECRET" doc:"twilio: the auth token; http: the secret of the signatures, whsec_ and base64"`
	From       string `env:"MESSAGING_FROM" doc:"the practice's number, such as +12125550100; twilio: or a messaging service (MG…)"`
	Hours      string `env:"MESSAGING_HOURS" envDefault:"08:00-21:00" is:"hours" doc:"times of day in the patient's time zone at which messages are sent"`
	ReminderAt string `env:"MISSED_READING_REMINDER_AT" envDefault:"18:00" is:"timeofday" doc:"when a patient is reminded of a missed reading, in the patient's time zone, unless the patient has a reminder_at"`
}

// Portal configures what patients read in the portal. Source: docs/console.md, "Portal".
type Portal struct {
	Advice        string `env:"PORTAL_ADVICE" doc:"what the portal advises after a reading outside the patient's bounds, up to 300 characters, in place of calling the practice today; when to call 911 is always stated"`
	AdviceSpanish string `env:"PORTAL_ADVICE_ES" doc:"the same in Spanish"`
}

// Display configures how readings and limits are shown. Source: docs/decisions/roles.md, "User permissions".
type Display struct {
	Weight      string `env:"WEIGHT_UNIT" envDefault:"lb" oneof:"lb,kg" doc:"unit of weights and their limits in the console, the portal and reports, unless the user has chosen one; the API has kg"`
	Temperature string `env:"TEMPERATURE_UNIT" envDefault:"F" oneof:"F,C" doc:"the same for temperatures; the API has C"`
}

// RateLimits configures the request limits. Source: docs/decisions/limits.md, "Which limit applies".
type RateLimits struct {
	User     RateLimit `env:"RATE_LIMIT_USER" envDefault:"1000/1h" doc:"per signed-in user; 0 = no limit"`
	Client   RateLimit `env:"RATE_LIMIT_CLIENT" envDefault:"600/1m" doc:"per machine client; 0 = no limit, and none if VIGIL_RATE_LIMIT_USER is 0"`
	Anon     RateLimit `env:"RATE_LIMIT_ANON" envDefault:"100/1h" doc:"per address, public requests; 0 = no limit"`
	Auth     RateLimit `env:"RATE_LIMIT_AUTH" envDefault:"20/1m" doc:"per user or address, requests that send mail or change a factor; per address, failed sign-ins; per account and address, sign-ins; 0 = no limit"`
	SignIn   RateLimit `env:"RATE_LIMIT_SIGN_IN" envDefault:"300/1m" doc:"per address, sign-ins of all accounts; 0 = no limit, and none if VIGIL_RATE_LIMIT_AUTH is 0"`
	Refresh  RateLimit `env:"RATE_LIMIT_REFRESH" envDefault:"120/1m" doc:"per address, rotations of refresh tokens; 0 = no limit"`
	Webhook  RateLimit `env:"RATE_LIMIT_WEBHOOK" envDefault:"500/1h" doc:"per address, gateway webhook: about 2 x active devices per hour; 0 = no limit"`
	Realtime RateLimit `env:"RATE_LIMIT_REALTIME" envDefault:"120/1m" doc:"per address, opening streams; per user, subscribing them; 0 = no limit"`
}

// TLS configures TLS for deployments without a proxy.
type TLS struct {
	CertFile    string `env:"TLS_CERT_FILE" doc:"PEM certificate chain"`
	KeyFile     string `env:"TLS_KEY_FILE" doc:"PEM private key; required with the certificate"`
	WebhookHost string `env:"WEBHOOK_HOST" is:"host" doc:"server name for which TLS 1.2 is allowed"`
}

// Auth configures sign-in and sessions.
type Auth struct {
	TOTPIssuer         string        `env:"TOTP_ISSUER" envDefault:"RPM" is:"issuer" doc:"name shown in authenticator apps"`
	RequireTwoFactor   []authz.Role  `env:"REQUIRE_2FA_ROLES" doc:"roles that must set up a second factor at once, or none; when absent, in production every role of the staff within 7 days, and none elsewhere"`
	FreshSignIn        time.Duration `env:"FRESH_SIGN_IN" envDefault:"10m" min:"0s" max:"24h" doc:"how long after a sign-in a user may add a second factor or remove a passkey without reauthentication; 0 always requires it. At most 24h"`
	SuperuserTwoFactor string        `env:"SUPERUSER_REQUIRE_2FA" oneof:"true,false" doc:"superusers need a second factor for the dashboard; when absent, true in production and false elsewhere"`
	RefreshFamilyLife  time.Duration `env:"REFRESH_FAMILY_MAX_DAYS" envDefault:"7" min:"24h" max:"2160h" doc:"longest chain of refresh tokens before a new sign-in; 1 to 90"`
	IdleLogout         time.Duration `env:"IDLE_LOGOUT_MINUTES" envDefault:"0" min:"0s" max:"24h" doc:"reject a refresh after this time without a request; 0 is off"`
}

// Clinical configures readings, alerts and escalations.
type Clinical struct {
	MeasuredAtMaxFuture        time.Duration `env:"MEASURED_AT_MAX_FUTURE_SECONDS" envDefault:"300" min:"0s" max:"24h" doc:"how far ahead of the server a measurement time may be"`
	AutoResolveWarning         int           `env:"AUTO_RESOLVE_NORMAL_READINGS_WARNING" envDefault:"1" min:"1" max:"10" doc:"consecutive normal readings that resolve a warning"`
	AutoResolveCritical        int           `env:"AUTO_RESOLVE_NORMAL_READINGS_CRITICAL" envDefault:"2" min:"1" max:"10" doc:"consecutive normal readings that resolve a critical alert"`
	LateReadingAfter           time.Duration `env:"LATE_READING_AFTER" envDefault:"24h" min:"1m" max:"720h" doc:"age from which an arriving reading is late: its alert opens no escalation"`
	IrregularHeartbeats        int           `env:"IRREGULAR_HEARTBEATS" envDefault:"3" min:"0" max:"100" doc:"irregular-heartbeat flags within 7 days that raise a warning; 0 = never"`
	WarningPush                string        `env:"WARNING_PUSH" envDefault:"trend" oneof:"trend,each,never" doc:"warnings that are pushed: trend = by the mean of the last 7 readings and the exceptions in docs/clinical.md, each = all, never = none; all are in the list, the app and the digest"`
	EarlyWarning               bool          `env:"EARLY_WARNING" envDefault:"true" doc:"values of an hour that together mean danger (part of NEWS2) raise an alert and an escalation"`
	ConfirmReadings            time.Duration `env:"CONFIRM_READINGS" envDefault:"0" min:"0s" max:"1h" doc:"how long the escalation of a first severe blood pressure is held for a confirming reading; 0 = not at all"`
	EscalationOverdueStat      time.Duration `env:"ESCALATION_OVERDUE_STAT" envDefault:"15m" min:"1m" max:"168h" doc:"a stat escalation not in progress by then is overdue"`
	EscalationOverdueUrgent    time.Duration `env:"ESCALATION_OVERDUE_URGENT" envDefault:"60m" min:"1m" max:"168h" doc:"the same for urgent"`
	EscalationOverdueRoutine   time.Duration `env:"ESCALATION_OVERDUE_ROUTINE" envDefault:"24h" min:"1m" max:"168h" doc:"the same for routine"`
	MissedDaysBeforeEscalation int           `env:"MISSED_DAYS_BEFORE_ESCALATION" envDefault:"3" min:"1" max:"30" doc:"consecutive missed days that open an escalation"`
	SuspectWeightPercent       float64       `env:"SUSPECT_WEIGHT_PERCENT" envDefault:"10" min:"0" max:"100" doc:"a weight that differs from the median of the last seven by more than this share is suspect; the larger of this and the next applies, both 0 = off"`
	SuspectWeightKg            float64       `env:"SUSPECT_WEIGHT_KG" envDefault:"10" min:"0" max:"500" doc:"the same in kilograms"`
	RestrictToCareTeam         bool          `env:"RESTRICT_TO_CARE_TEAM" envDefault:"false" doc:"clinicians can access only patients of their care teams"`

	EscalationTiersStat    []time.Duration `env:"ESCALATION_TIERS_STAT" envDefault:"15m,30m,60m" doc:"time after opening until an untaken escalation reaches each tier: the clinicians on call; the clinical managers; managers and administrators. The last interval then repeats"`
	EscalationTiersUrgent  []time.Duration `env:"ESCALATION_TIERS_URGENT" envDefault:"1h,4h,8h" doc:"the same for urgent"`
	EscalationTiersRoutine []time.Duration `env:"ESCALATION_TIERS_ROUTINE" envDefault:"24h,48h,72h" doc:"the same for routine"`
}

// Billing configures the CPT rules that a practice may choose.
type Billing struct {
	Enable2026Codes     bool          `env:"BILLING_ENABLE_2026_CODES" envDefault:"true" doc:"create and accept 99445 and 99470 by the CMS rules"`
	MaxUnits99458       int           `env:"CPT_99458_MAX_UNITS" envDefault:"3" min:"1" max:"10" doc:"units of 99458 in a month"`
	RequireConsent      bool          `env:"BILLING_REQUIRE_CONSENT" envDefault:"true" doc:"no entry without a consent in force"`
	RequireOrder        bool          `env:"BILLING_REQUIRE_ORDER" envDefault:"false" doc:"an entry cannot be reviewed without a stored order for monitoring; false: a missing order is a warning"`
	RequireSecondPerson bool          `env:"BILLING_REQUIRE_SECOND_PERSON" envDefault:"false" doc:"the creator of a manual entry cannot review it"`
	EscalationTimeCap   time.Duration `env:"ESCALATION_TIME_CAP_MINUTES" envDefault:"60" min:"0s" max:"4h" doc:"maximum time logged when an escalation is resolved"`
	Locality            string        `env:"PRACTICE_LOCALITY" doc:"the practice's locality in the fee schedule; empty = national figures"`
	LiveContactFrom     string        `env:"BILLING_LIVE_CONTACT_FROM" envDefault:"2026-01-01" is:"day" doc:"from this day interactive time counts only with a live way of contact (phone, video, in person)"`
	TimeRule            string        `env:"BILLING_TIME_RULE" oneof:"interactive,care_management" doc:"time that counts for 99457, 99458 and 99470: interactive, live contact only; care_management, also care management, in a month with live contact. Until it is set, interactive counts and the console prompts for it"`
	TimeRuleFrom        string        `env:"BILLING_TIME_RULE_FROM" envDefault:"2021-01-01" is:"day" doc:"first month of service under that rule; earlier months count live contact only"`
	ReportCache         time.Duration `env:"REPORT_CACHE_MINUTES" envDefault:"15" min:"0s" max:"24h" doc:"how long a report is cached; 0 is off"`
}

// Devices configures device orders.
type Devices struct {
	ManagedMode         bool `env:"DEVICE_MANAGED_MODE" envDefault:"true" doc:"device orders and delivery estimates"`
	DeliveryWorkingDays int  `env:"DEVICE_DELIVERY_WORKING_DAYS" envDefault:"5" min:"0" max:"60" doc:"working days until a device arrives"`
}

// Audit configures the audit trail.
type Audit struct {
	HeadPath string `env:"AUDIT_HEAD_PATH" doc:"file in a separate store to which each day's head hash is appended; empty is off"`
}

// Backup configures where encrypted backups are stored and how many are kept.
type Backup struct {
	Folder           string   `env:"BACKUP_FOLDER" doc:"folder for backups; {dir}/snapshots when not set"`
	Keep             int      `env:"BACKUP_KEEP" envDefault:"14" min:"0" max:"3650" doc:"backups that the nightly job keeps; 0 = no nightly backup"`
	Recipients       []string `env:"BACKUP_RECIPIENTS" is:"agerecipient" doc:"further age recipients (age1…), comma separated, that can open backups; an invalid one stops the start"`
	S3Bucket         string   `env:"BACKUP_S3_BUCKET" doc:"S3-compatible bucket instead of the folder"`
	S3Region         string   `env:"BACKUP_S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Endpoint       string   `env:"BACKUP_S3_ENDPOINT" is:"base" doc:"address of the S3 service"`
	S3AccessKey      string   `env:"BACKUP_S3_ACCESS_KEY" doc:"access key"`
	S3Secret         Secret   `env:"BACKUP_S3_SECRET" doc:"secret of the access key"`
	S3Prefix         string   `env:"BACKUP_S3_PREFIX" doc:"the practice's part of a shared bucket, such as elm-street"`
	S3ForcePathStyle bool     `env:"BACKUP_S3_FORCE_PATH_STYLE" envDefault:"false" doc:"bucket in the path instead of the host name"`
}

// Retention configures how long data is kept; the minimums are legal requirements. Source: docs/decisions/retention.md, "Retention".
type Retention struct {
	RecordYears    int           `env:"RETENTION_RECORD_YEARS" envDefault:"10" min:"10" max:"100" doc:"patient, clinical and billing records after the last activity"`
	AuditYears     int           `env:"RETENTION_AUDIT_YEARS" envDefault:"7" min:"6" max:"100" doc:"audit trail"`
	WebhookRaw     time.Duration `env:"RETENTION_WEBHOOK_DAYS" envDefault:"90" min:"24h" max:"87600h" doc:"raw webhook payloads"`
	Quarantine     time.Duration `env:"RETENTION_QUARANTINE_DAYS" envDefault:"180" min:"24h" max:"87600h" doc:"quarantine items after closing"`
	PushDeliveries time.Duration `env:"RETENTION_PUSH_DELIVERY_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"push delivery records"`
	Notifications  time.Duration `env:"RETENTION_NOTIFICATION_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"in-app notifications after reading"`
	RefreshTokens  time.Duration `env:"RETENTION_REFRESH_TOKEN_DAYS" envDefault:"30" min:"24h" max:"87600h" doc:"refresh-token rows after expiry"`
	WebhooksOut    time.Duration `env:"RETENTION_WEBHOOK_DELIVERY_DAYS" envDefault:"90" min:"24h" max:"87600h" doc:"webhook deliveries after success or as dead letters"`
	PushTokens     time.Duration `env:"RETENTION_PUSH_TOKEN_DAYS" envDefault:"365" min:"24h" max:"87600h" doc:"inactive push tokens"`
	Changes        time.Duration `env:"RETENTION_CHANGES_DAYS" envDefault:"30" min:"168h" max:"87600h" doc:"change feed entries"`
}
