package config

import "github.com/vigilhealth/vigil/internal/phi"

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
