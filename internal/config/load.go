package config

import (
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/caarlos0/env/v11"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Problems is the error of [Load]: one line per problem, each starting with the setting's name.
type Problems []string

// Error joins the lines.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// Load reads the settings from an environment in the form of os.Environ and validates them. A blank value counts as absent. The error is of type
// [Problems].
func Load(environ []string) (Settings, error) {
	l := &loader{given: map[string]string{}}
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, Prefix) {
			l.given[name] = value
		}
	}
	var s Settings
	values := l.resolve(&s)
	err := env.ParseWithOptions(&s, env.Options{
		Environment: values,
		Prefix:      Prefix,
		FuncMap:     l.parsers(),
		// The parsers use the current name to report problems.
		OnSet: func(name string, _ any, _ bool) { l.current = name },
	})
	if err != nil {
		return Settings{}, fmt.Errorf("reading the settings: %w", err)
	}
	l.check(&s)
	if len(l.problems) > 0 {
		return Settings{}, l.problems
	}
	l.warn(&s)
	s.warnings, s.list = l.warnings, l.list(values)
	if s.PublicURL != "" {
		s = s.WithPublicURL(s.PublicURL)
	}
	return s, nil
}

// loader collects problems and warnings while it reads the settings.
type loader struct {
	given    map[string]string
	current  string
	problems Problems
	reported []string
	warnings []string
}

// report records the first problem of a setting. Later ones usually follow from it.
func (l *loader) report(name, message string) {
	if !slices.Contains(l.reported, name) {
		l.reported = append(l.reported, name)
		l.problems = append(l.problems, name+": "+message)
	}
}

// resolve returns the values of the settings, reading the files named by <NAME>_FILE, and warns of unknown names.
func (l *loader) resolve(s *Settings) map[string]string {
	values, known := map[string]string{}, map[string]bool{}
	for f := range fields(s) {
		known[f.name], known[f.name+"_FILE"] = true, true
		value, path := l.given[f.name], l.given[f.name+"_FILE"]
		switch {
		case value != "" && path != "":
			l.report(f.name, "is set twice, also as "+f.name+"_FILE")
		case path != "":
			content, err := os.ReadFile(path) //nolint:gosec // the operator names the file
			if err != nil {
				l.report(f.name+"_FILE", "cannot be read: "+causeOf(err))
			}
			value = strings.TrimRight(string(content), "\r\n")
		}
		if strings.TrimSpace(value) == "" {
			value = ""
		}
		values[f.name] = value
	}
	for name := range l.given {
		if !known[name] {
			l.warnings = append(l.warnings, name+" is not a setting; check its spelling")
		}
	}
	slices.Sort(l.warnings)
	return values
}

// causeOf returns the cause of a file error without the path, which may be a secret given under the wrong name.
func causeOf(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return "unreadable"
}

// parsers returns a parser for each type of value. The parsers record problems and continue, so that one run finds every problem, and their
// messages never quote a value.
func (l *loader) parsers() map[reflect.Type]env.ParserFunc {
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[string]():          reporting(l, func(text string) (string, error) { return text, nil }),
		reflect.TypeFor[bool]():            reporting(l, parseBool),
		reflect.TypeFor[int]():             reporting(l, parseInt),
		reflect.TypeFor[float64]():         reporting(l, parseNumber),
		reflect.TypeFor[time.Duration]():   reporting(l, func(text string) (time.Duration, error) { return parseDuration(text, unitOf(l.current)) }),
		reflect.TypeFor[[]time.Duration](): reporting(l, parseDurations),
		reflect.TypeFor[[]string]():        reporting(l, func(text string) ([]string, error) { return splitList(text), nil }),
		reflect.TypeFor[[]authz.Role]():    reporting(l, parseRoles),
		reflect.TypeFor[[]netip.Prefix]():  reporting(l, parsePrefixes),
		reflect.TypeFor[RateLimit]():       reporting(l, parseRateLimit),
		reflect.TypeFor[[]GroupRole]():     reporting(l, parseRoleMap),
		reflect.TypeFor[[]SMARTIssuer]():   reporting(l, parseSMARTIssuers),
		reflect.TypeFor[[]phi.Key]():       reporting(l, parseEncryptionKeys),
		reflect.TypeFor[rsa.PrivateKey]():  reporting(l, parseRSAKey), // the library dereferences the pointer type
	}
}

func reporting[T any](l *loader, parse func(string) (T, error)) env.ParserFunc {
	return func(text string) (any, error) {
		value, err := parse(strings.TrimSpace(text))
		if err != nil {
			l.report(l.current, err.Error())
		}
		return value, nil
	}
}

// WithPublicURL sets the public URL to fallback (such as "http://127.0.0.1:8090") if it is not set, and fills in the defaults derived from it.
func (s Settings) WithPublicURL(fallback string) Settings {
	s.PublicURL = cmp.Or(s.PublicURL, strings.TrimRight(fallback, "/"))
	s.FrontendResetURL = cmp.Or(s.FrontendResetURL, s.PublicURL+"/reset-password")
	s.FHIR.MRNSystem = cmp.Or(s.FHIR.MRNSystem, s.PublicURL+"/fhir/identifier/mrn")
	s.FHIR.EMRIDSystem = cmp.Or(s.FHIR.EMRIDSystem, s.PublicURL+"/fhir/identifier/emr")
	if at, err := url.Parse(s.PublicURL); err == nil && at.Hostname() != "" {
		s.VAPID.Subject = cmp.Or(s.VAPID.Subject, "mailto:postmaster@"+at.Hostname())
		s.VAPIDDev.Subject = cmp.Or(s.VAPIDDev.Subject, "mailto:postmaster@"+at.Hostname())
	}
	return s
}

// RequireEncryption returns an error if there is no encryption key, for commands that need one.
func (s Settings) RequireEncryption() error {
	if len(s.EncryptionKeys) > 0 {
		return nil
	}
	return errors.New(Prefix + "ENCRYPTION_KEYS is not set: `vigil keys generate` makes one")
}

// SuperuserNeedsTwoFactor reports whether superusers of the dashboard must have a second factor.
func (s Settings) SuperuserNeedsTwoFactor() bool {
	if s.Auth.SuperuserTwoFactor == "" {
		return s.IsProduction()
	}
	return s.Auth.SuperuserTwoFactor == "true"
}

// twoFactorGrace is how long an account may do without the second factor that production requires by default.
const twoFactorGrace = 7 * 24 * time.Hour

// RolesNeedingTwoFactor returns the roles that must set up a second factor, and within what time.
func (s Settings) RolesNeedingTwoFactor() ([]authz.Role, time.Duration) {
	if s.Auth.RequireTwoFactor == nil && s.IsProduction() {
		return slices.DeleteFunc(slices.Clone(authz.Roles), func(role authz.Role) bool { return role == authz.Patient }), twoFactorGrace
	}
	return s.Auth.RequireTwoFactor, 0
}

// IsProduction reports whether the environment is production.
func (s Settings) IsProduction() bool { return s.Environment == Production }

// SlogLevel returns the log level for slog.
func (s Settings) SlogLevel() slog.Level {
	switch s.LogLevel {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Warnings returns messages about values that are allowed but probably not intended, for the log at startup.
func (s Settings) Warnings() []string { return slices.Clone(s.warnings) }

// field is one setting in [Settings].
type field struct {
	name  string
	value reflect.Value
	tag   reflect.StructTag
}

// fields yields the settings in the order of the struct.
func fields(s *Settings) iter.Seq[field] {
	return func(yield func(field) bool) { walk(reflect.ValueOf(s).Elem(), Prefix, yield) }
}

func walk(at reflect.Value, prefix string, yield func(field) bool) bool {
	for i := range at.NumField() {
		f := at.Type().Field(i)
		name := f.Tag.Get("env")
		switch {
		case name == "-" || !f.IsExported():
		case name != "":
			if !yield(field{prefix + name, at.Field(i), f.Tag}) {
				return false
			}
		case !walk(at.Field(i), prefix+f.Tag.Get("envPrefix"), yield):
			return false
		}
	}
	return true
}

// LookupSetting reports whether a setting has this name, directly or as <NAME>_FILE, and whether its value is secret.
func LookupSetting(name string) (known, secret bool) {
	for f := range fields(new(Settings)) {
		if f.name == name {
			return true, f.isSecret()
		}
		if strings.TrimSuffix(name, "_FILE") == f.name {
			known = true // a path is not secret
		}
	}
	return known, false
}

// checkProduction requires the settings that production needs and rejects those for development.
func (l *loader) checkProduction(s *Settings) {
	if !s.IsProduction() {
		return
	}
	if s.PublicURL == "" { // a wrong one would remain in identifiers and mails
		l.report(Prefix+"PUBLIC_URL", "is required with "+Prefix+"ENVIRONMENT=production")
	}
	if s.OIDC.Configured() && !strings.HasPrefix(s.OIDC.Issuer, "https://") { // an attacker on the connection could replace the signing keys
		l.report(Prefix+"OIDC_ISSUER", "must be https in production")
	}
	for _, issuer := range s.SMART.Issuers {
		if !strings.HasPrefix(issuer.Address, "https://") {
			l.report(Prefix+"SMART_ISSUERS", "must be https in production")
		}
	}
	if len(s.WebPush.DevAllowedHosts) > 0 {
		l.report(Prefix+"WEB_PUSH_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
	if len(s.Outbound.DevAllowedHosts) > 0 {
		l.report(Prefix+"OUTBOUND_DEV_ALLOWED_HOSTS", "must be empty in production")
	}
}

// ageRecipient validates the public key of an age recipient that can decrypt backups.
func ageRecipient(text string) (string, error) {
	if _, err := age.ParseX25519Recipient(text); err != nil {
		return "", errors.New("must be a list of age recipients, age1…")
	}
	return text, nil
}
