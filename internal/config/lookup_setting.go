package config

import (
	"crypto/rsa"
	"reflect"
	"strings"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Named says whether there is a setting of this name, itself or as <NAME>_FILE, and whether its value must not stand where many read.
func Named(name string) (known, secret bool) {
	for f := range fields(new(Settings)) {
		if f.name == name {
			switch f.value.Type() {
			case reflect.TypeFor[Secret](), reflect.TypeFor[[]phi.Key](), reflect.TypeFor[*rsa.PrivateKey]():
				return true, true
			}
			return true, false
		}
		if strings.TrimSuffix(name, "_FILE") == f.name {
			known = true // a path tells nothing
		}
	}
	return known, false
}
