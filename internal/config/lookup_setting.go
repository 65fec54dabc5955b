package config

import (
	"crypto/rsa"
	"reflect"
	"strings"

	"github.com/vigilhealth/vigil/internal/phi"
)

// LookupSetting reports whether a setting has this name, directly or as <NAME>_FILE, and whether its value is secret.
func LookupSetting(name string) (known, secret bool) {
	for f := range fields(new(Settings)) {
		if f.name == name {
			switch f.value.Type() {
			case reflect.TypeFor[Secret](), reflect.TypeFor[[]phi.Key](), reflect.TypeFor[*rsa.PrivateKey]():
				return true, true
			}
			return true, false
		}
		if strings.TrimSuffix(name, "_FILE") == f.name {
			known = true // a path is not secret
		}
	}
	return known, false
}
