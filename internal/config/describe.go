package config

import (
	"iter"
	"reflect"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Setting describes one setting for the documentation.
type Setting struct {
	Name, Default, Meaning string
	Secret                 bool
}

// Describe lists every setting in the order of [Settings].
func Describe() []Setting {
	var all []Setting
	for f := range fields(&Settings{}) {
		_, secret := f.value.Interface().(Secret)
		_, keys := f.value.Interface().([]phi.Key)
		all = append(all, Setting{
			Name: f.name, Default: f.tag.Get("envDefault"), Meaning: f.tag.Get("doc"),
			Secret: secret || keys || f.tag.Get("json") == "-",
		})
	}
	return all
}

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
