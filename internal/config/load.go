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

	"github.com/caarlos0/env/v11"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Problems is the error of Load: one line per problem, each starting with the setting's name.
type Problems []string

// Error joins the lines.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// Load reads the settings from an environment in the form of os.Environ and checks them all. An empty or
// blank value is an absent one. The error is of type [Problems].
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
		// The parsers below learn here whose value they read, so that they can report it by name.
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
	s.warnings = l.warnings
	if s.PublicURL != "" {
		s = s.ServedAt(s.PublicURL)
	}
	return s, nil
}

// loader collects what is wrong while the settings are read.
type loader struct {
	given    map[string]string
	current  string
	problems Problems
	reported []string
	warnings []string
}

// report notes the first problem of a setting; what follows from it would only confuse.
func (l *loader) report(name, message string) {
	if !slices.Contains(l.reported, name) {
		l.reported = append(l.reported, name)
		l.problems = append(l.problems, name+": "+message)
	}
}

// resolve returns the value of every setting that was given, reading the files that <NAME>_FILE names, and
// warns of names that are no settings.
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
				l.report(f.name+"_FILE", "cannot be read: "+reason(err))
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

// reason is the cause of a file error without the path, which may be a secret given under the wrong name.
func reason(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return "unreadable"
}

// parsers reads every type of value that is not plain text. They report and go on, so that one round finds
// every problem, and their messages never quote.
func (l *loader) parsers() map[reflect.Type]env.ParserFunc {
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[string]():          reporting(l, func(text string) (string, error) { return text, nil }),
		reflect.TypeFor[bool]():            reporting(l, parseBool),
		reflect.TypeFor[int]():             reporting(l, parseInt),
		reflect.TypeFor[float64]():         reporting(l, parseNumber),
		reflect.TypeFor[time.Duration]():   reporting(l, func(text string) (time.Duration, error) { return parseDuration(text, unitOf(l.current)) }),
		reflect.TypeFor[[]time.Duration](): reporting(l, parseDurations),
		reflect.TypeFor[[]string]():        reporting(l, func(text string) ([]string, error) { return list(text), nil }),
		reflect.TypeFor[[]authz.Role]():    reporting(l, parseRoles),
		reflect.TypeFor[[]netip.Prefix]():  reporting(l, parsePrefixes),
		reflect.TypeFor[RateLimit]():       reporting(l, parseRateLimit),
		reflect.TypeFor[[]GroupRole]():     reporting(l, parseRoleMap),
		reflect.TypeFor[[]phi.Key]():       reporting(l, parseEncryptionKeys),
		reflect.TypeFor[rsa.PrivateKey]():  reporting(l, parseRSAKey), // the library looks through the pointer
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

// ServedAt fills in what depends on the public address: fallback (such as "http://127.0.0.1:8090") where the
// operator gave none, and the defaults derived from it.
func (s Settings) ServedAt(fallback string) Settings {
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

// RequireEncryption is the error of a command that cannot run without an encryption key.
func (s Settings) RequireEncryption() error {
	if len(s.EncryptionKeys) > 0 {
		return nil
	}
	return errors.New(Prefix + "ENCRYPTION_KEYS is not set: `vigil keys generate` makes one")
}

// SuperuserNeedsTwoFactor reports whether superusers of the dashboard must have a second factor.
func (s Settings) SuperuserNeedsTwoFactor() bool {
	if s.Auth.SuperuserTwoFactor == "" {
		return s.Production()
	}
	return s.Auth.SuperuserTwoFactor == "true"
}

// Production reports whether this is the real thing.
func (s Settings) Production() bool { return s.Environment == Production }

// SlogLevel is the log level in slog's terms.
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

// Warnings are sentences about settings that are allowed but probably not meant, for the log at start.
func (s Settings) Warnings() []string { return slices.Clone(s.warnings) }

// field is one setting inside Settings.
type field struct {
	name  string
	value reflect.Value
	tag   reflect.StructTag
}

// fields walks the settings in the order of the struct.
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
