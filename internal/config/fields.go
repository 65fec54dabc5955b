package config

import (
	"iter"
	"reflect"
)

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
