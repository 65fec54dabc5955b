package config

import (
	"crypto/rsa"
	"reflect"
	"regexp"
	"slices"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Setting is a setting as administrators see it. Value and Default are in the form of the environment, or "" for none. The value of a secret,
// and an address with credentials in it, is hidden.
type Setting struct {
	Name, Default, Meaning, Value string
	Source                        string // default, environment or file
	Secret                        bool
}

// credentials are a password or token inside an address.
var credentials = regexp.MustCompile(`(?i)://[^/\s]*@|[?&][^=]*(token|key|secret|sig|password)[^=]*=`)

// List returns every setting in the order of [Settings].
func (s Settings) List() []Setting { return slices.Clone(s.list) }

// list describes the settings with their values by name.
func (l *loader) list(values map[string]string) []Setting {
	var all []Setting
	for f := range fields(new(Settings)) {
		one := Setting{Name: f.name, Default: f.tag.Get("envDefault"), Meaning: f.tag.Get("doc"), Source: "default", Secret: f.isSecret()}
		one.Value = one.Default
		if value := values[f.name]; value != "" {
			one.Value, one.Source = value, "environment"
			if l.given[f.name+"_FILE"] != "" {
				one.Source = "file"
			}
		}
		one.Secret = one.Secret || credentials.MatchString(one.Value)
		if one.Secret {
			one.Value = ""
		}
		all = append(all, one)
	}
	return all
}

// isSecret reports whether no one may read the setting's value.
func (f field) isSecret() bool {
	switch f.value.Type() {
	case reflect.TypeFor[Secret](), reflect.TypeFor[[]phi.Key](), reflect.TypeFor[*rsa.PrivateKey]():
		return true
	}
	return false
}
