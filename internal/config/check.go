package config

import (
	"crypto/tls"
	"errors"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container may have no time zones of its own

	"github.com/vigilhealth/vigil/internal/validate"
)

// check validates every value against its tags, and then combinations of values.
func (l *loader) check(s *Settings) {
	l.fillPracticeCode(&s.EMR)
	for f := range fields(s) {
		if !slices.Contains(l.reported, f.name) {
			l.checkTags(f)
		}
	}
	l.checkTimeZone(s)
	l.checkSecrets(s)
	l.checkEMR(&s.EMR)
	l.checkVAPID(Prefix+"VAPID_", &s.VAPID)
	l.checkVAPID(Prefix+"VAPID_DEV_", &s.VAPIDDev)
	l.checkTLS(s.TLS)
	l.checkOIDC(s.OIDC)
	l.checkWarehouse(s.Warehouse, s.Backup)
	l.checkTiers(s.Clinical)
	l.checkPatientMessages(s)
	l.checkWebhooks(s.Webhooks)
	l.checkEvents(s)
	l.checkSMTP(s.SMTP)
	l.checkProduction(s)
}

// checkTags applies the tags oneof, min, max and is. The last also normalizes the value.
func (l *loader) checkTags(f field) {
	if allowed := f.tag.Get("oneof"); allowed != "" && f.value.String() != "" {
		if choices := strings.Split(allowed, ","); !slices.Contains(choices, f.value.String()) {
			l.report(f.name, "must be "+strings.Join(choices, " or "))
		}
	}
	if low, high := f.tag.Get("min"), f.tag.Get("max"); low != "" {
		outside := false
		if f.value.CanFloat() {
			outside = f.value.Float() < mustFloat(low) || f.value.Float() > mustFloat(high)
		} else {
			outside = f.value.Int() < mustInt(f, low) || f.value.Int() > mustInt(f, high)
		}
		if outside {
			l.report(f.name, "must be between "+low+" and "+high)
		}
	}
	rule, ok := formatRules[f.tag.Get("is")]
	if !ok {
		return
	}
	each := func(item reflect.Value) {
		if item.String() == "" {
			return
		}
		usual, err := rule(item.String())
		if err != nil {
			l.report(f.name, err.Error())
		}
		item.SetString(usual)
	}
	if f.value.Kind() == reflect.String {
		each(f.value)
		return
	}
	for i := range f.value.Len() {
		each(f.value.Index(i))
	}
}

// mustInt parses a min or max tag in the field's own type. An invalid tag panics, which fails the package's tests.
func mustInt(f field, text string) int64 {
	if _, isDuration := f.value.Interface().(time.Duration); isDuration {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		return int64(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// mustFloat parses the tag of a decimal field, as [mustInt] does for the others.
func mustFloat(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (l *loader) checkTimeZone(s *Settings) {
	zone, err := time.LoadLocation(s.PracticeTimeZone)
	if err != nil || s.PracticeTimeZone == "Local" {
		l.report(Prefix+"PRACTICE_TIME_ZONE", "must be an IANA name such as America/New_York")
	}
	s.PracticeLocation = zone
}

func (l *loader) checkSecrets(s *Settings) {
	if n := len(s.SettingsKey); n != 0 && n != 32 {
		l.report(Prefix+"SETTINGS_KEY", "must be exactly 32 characters")
	}
	if s.Gateway.WebhookSecretPrevious != "" && s.Gateway.WebhookSecret == "" {
		l.report(Prefix+"GATEWAY_WEBHOOK_SECRET", "is required with "+Prefix+"GATEWAY_WEBHOOK_SECRET_PREVIOUS")
	}
}

// fillPracticeCode inserts the practice code into the EMR addresses before they are checked.
func (l *loader) fillPracticeCode(e *EMR) {
	const placeholder = "{practice_code}"
	for _, address := range []*string{&e.FHIRBaseURL, &e.TokenURL, &e.AuthorizeURL} {
		if !strings.Contains(*address, placeholder) {
			continue
		}
		code := e.PracticeCode
		if code == "" {
			l.report(Prefix+"EMR_PRACTICE_CODE", "is required by an EMR address with "+placeholder)
			code = "missing" // keeps the address itself from being reported, too
		}
		*address = strings.ReplaceAll(*address, placeholder, code)
	}
}

func (l *loader) checkEMR(e *EMR) {
	if e.PrivateKeyPrevious != nil && e.PrivateKey == nil {
		l.report(Prefix+"EMR_PRIVATE_KEY", "is required with "+Prefix+"EMR_PRIVATE_KEY_PREVIOUS")
	}
	if len(e.RetryDelays) != 5 {
		l.report(Prefix+"EMR_RETRY_DELAYS", "must list five durations")
	}
	if len(e.QuickRetryDelays) > 3 {
		l.report(Prefix+"EMR_QUICK_RETRY_DELAYS", "must list at most three durations")
	}
}

// checkTiers requires three deadlines per priority in ascending order.
func (l *loader) checkTiers(c Clinical) {
	for name, deadlines := range map[string][]time.Duration{
		"STAT": c.EscalationTiersStat, "URGENT": c.EscalationTiersUrgent, "ROUTINE": c.EscalationTiersRoutine,
	} {
		if len(deadlines) != 3 || !slices.IsSorted(deadlines) || deadlines[0] < time.Second || deadlines[2] > 30*24*time.Hour {
			l.report(Prefix+"ESCALATION_TIERS_"+name, "must list three durations from 1s to 720h, none shorter than the one before")
		}
	}
}

func (l *loader) checkTLS(t TLS) {
	const cert, key = Prefix + "TLS_CERT_FILE", Prefix + "TLS_KEY_FILE"
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "":
		l.report(cert, "is required with "+key)
	case t.KeyFile == "":
		l.report(key, "is required with "+cert)
	default:
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			l.report(cert, "and "+key+" must name a readable PEM certificate and its private key")
		}
	}
}

// warn collects warnings about values that are allowed but probably not intended.
func (l *loader) warn(s *Settings) {
	add := func(text string) { l.warnings = append(l.warnings, text) }
	if missing := s.EMR.missingSettings(); len(missing) > 0 {
		add("delivery to the EMR is off until these are set: " + strings.Join(missing, ", "))
	}
	if !s.IsProduction() {
		return
	}
	for f := range fields(s) {
		isIdentifier := f.tag.Get("is") == "uri" // FHIR systems are names and are never requested
		if text, ok := f.value.Interface().(string); ok && !isIdentifier && strings.HasPrefix(text, "http://") {
			add(f.name + " is plain http in production")
		}
	}
	if at, err := url.Parse(s.PublicURL); err == nil && (at.Hostname() == "localhost" || net.ParseIP(at.Hostname()).IsLoopback()) {
		add(Prefix + "PUBLIC_URL is a loopback address: it is written into FHIR identifiers and mails permanently")
	}
	if s.SettingsKey == "" {
		add(Prefix + "SETTINGS_KEY is not set: PocketBase keeps its settings in the clear")
	}
	if len(s.TrustedProxyHeaders) > 0 && len(s.Connections.TrustedProxies) == 0 {
		add(Prefix + "TRUSTED_PROXY_HEADERS is trusted from every sender, and connections are not limited by address, until " + Prefix + "TRUSTED_PROXIES names the proxies")
	}
	if !s.Gateway.DedupEnabled {
		add(Prefix + "GATEWAY_DEDUP_ENABLED is off in production: repeated events are stored again")
	}
}

// missingSettings names the settings that a partly configured EMR needs for deliveries. A signing key alone does not count as partly configured.
func (e EMR) missingSettings() []string {
	if e.ClientID == "" && e.FHIRBaseURL == "" && e.TokenURL == "" {
		return nil
	}
	var missing []string
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"EMR_CLIENT_ID", e.ClientID != ""},
		{"EMR_FHIR_BASE_URL", e.FHIRBaseURL != ""},
		{"EMR_TOKEN_URL", e.TokenURL != ""},
		{"EMR_PRIVATE_KEY", e.PrivateKey != nil || e.ApplicationType == "interactive" || e.signsInBySecret()},
		{"EMR_CLIENT_SECRET", e.ClientSecret != "" || e.ApplicationType == "interactive" || !e.signsInBySecret()},
		{"EMR_AUTHORIZE_URL", e.AuthorizeURL != "" || e.ApplicationType != "interactive"},
	} {
		if !part.given {
			missing = append(missing, Prefix+part.name)
		}
	}
	return missing
}

// formatRules holds the values of the tag "is": each function validates one non-empty text and returns its normalized form. Messages never quote
// the value.
var formatRules = map[string]func(string) (string, error){
	"addr":         addr,
	"agerecipient": ageRecipient, "ageidentities": ageIdentities, "natsurls": natsURLs,
	"base":  base,
	"hours": checkHours, "timeofday": checkTimeOfDay,
	"ein":         digits(9, "must be nine digits, 12-3456789"),
	"npi":         npi,
	"state":       pattern(`^[A-Z]{2}$`, "must be two capital letters"),
	"taxonomy":    pattern(validate.TaxonomyCode.String(), "must be a provider taxonomy code such as 207Q00000X"),
	"tenDigits":   digits(10, "must be ten digits"),
	"twoDigits":   pattern(`^[0-9]{2}$`, "must be two digits"),
	"x12":         pattern(`^[A-Za-z0-9 .,'()/&#-]{2,60}$`, "must be 2 to 60 letters, digits, spaces and simple signs"),
	"zip":         pattern(`^[0-9]{5}(-?[0-9]{4})?$`, "must be a ZIP code: 12345 or 12345-6789"),
	"code":        pattern(`^[A-Za-z0-9._-]{1,64}$`, "must be letters, digits, dots, dashes or underscores"),
	"day":         day,
	"framer":      pattern(`^https?://(\*\.)?[a-z0-9.-]+(:[0-9]+)?$`, "must be a list of origins such as https://emr.example or https://*.emr.example"),
	"header":      pattern(`^[A-Za-z0-9-]+$`, "must be a list of header names"),
	"host":        host,
	"hostpattern": hostPattern,
	"hostport":    hostPort,
	"issuer":      pattern(`^[A-Za-z0-9 ._-]{1,64}$`, "must be up to 64 letters, digits, spaces, dots, dashes or underscores"),
	"mailbox":     mailbox,
	"origin":      origin,
	"page":        page,
	"practice":    pattern(`^[a-z0-9-]{1,40}$`, "must be up to 40 small letters, digits and dashes"),
	"partition":   pattern(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`, "must be up to 63 small letters, digits and dashes"),
	"scope":       pattern(`^[\x21\x23-\x5B\x5D-\x7E]+$`, "must be OAuth scopes separated by spaces"),    // RFC 6749 section 3.3
	"shown":       pattern(`^\S.{14,}\S$`, "must be at least 16 characters, without spaces around them"), // guessing it would allow sending readings
	"systemscope": pattern(`^system/[\x21\x23-\x5B\x5D-\x7E]+$`, "must be scopes of the form system/… separated by spaces"),
	"uri":         uri,
	"url":         endpoint,
}

var (
	hostName      = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9])?$`)
	mailtoPattern = regexp.MustCompile(`^mailto:[^\s@]+@[^\s@]+$`)
)

var errURL = errors.New("must be an http or https address without user name")

func pattern(expression, message string) func(string) (string, error) {
	compiled, refused := regexp.MustCompile(expression), errors.New(message)
	return func(text string) (string, error) {
		if !compiled.MatchString(text) {
			return "", refused
		}
		return text, nil
	}
}

func webAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errURL
	}
	return u, nil
}

// endpoint validates an address that is requested as it is.
func endpoint(text string) (string, error) {
	u, err := webAddress(text)
	if err != nil {
		return "", err
	}
	if u.Fragment != "" {
		return "", errors.New("must be an address without a fragment")
	}
	return text, nil
}

// page validates an address to which a query is appended; a fragment may hold the path of a single-page app.
func page(text string) (string, error) {
	if _, err := webAddress(text); err != nil {
		return "", err
	}
	if strings.Contains(text, "?") {
		return "", errors.New("must be an address without a query")
	}
	return text, nil
}

// base validates an address to which paths are appended, and removes the trailing slash.
func base(text string) (string, error) {
	u, err := webAddress(text)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("must be an address without query or fragment")
	}
	return strings.TrimRight(text, "/"), nil
}

// origin validates scheme, host and port without a path, and returns them in lower case.
func origin(text string) (string, error) {
	text, err := base(text)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(text); err != nil || u.Path != "" {
		return "", errors.New("must be scheme and host only, such as https://rpm.example.org")
	}
	return strings.ToLower(text), nil
}

func uri(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" {
		return "", errors.New("must be an absolute URI")
	}
	return text, nil
}

func addr(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err != nil || !validPort(port) {
		return "", errors.New("must be an address to listen on such as 127.0.0.1:9100")
	}
	return text, nil
}

func validPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// hostPattern validates a host name, optionally with "*." for its subdomains, and rejects IP addresses.
func hostPattern(text string) (string, error) {
	text = strings.ToLower(text)
	name := strings.TrimPrefix(text, "*.")
	if _, err := netip.ParseAddr(name); err == nil || !hostName.MatchString(name) {
		return "", errors.New("must be a list of host names, *. allowed in front, no addresses")
	}
	return text, nil
}

// host validates a host name or IP address without port.
func host(text string) (string, error) {
	text = strings.ToLower(text)
	if _, err := netip.ParseAddr(text); err != nil && !hostName.MatchString(text) {
		return "", errors.New("must be a host name or address")
	}
	return text, nil
}

// hostPort validates a host name, optionally with "*.", or an IP address, with or without port.
func hostPort(text string) (string, error) {
	text = strings.ToLower(text)
	name := strings.Trim(text, "[]")
	if before, port, err := net.SplitHostPort(text); err == nil && validPort(port) {
		name = before
	}
	if _, err := host(strings.TrimPrefix(name, "*.")); err != nil {
		return "", errors.New("must be a list of host[:port]")
	}
	return text, nil
}

func mailbox(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", errors.New("must be a mail address, alone or as Name <address>")
	}
	return text, nil
}
