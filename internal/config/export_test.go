package config

// Describe lists every setting with its default, for the documentation.
func Describe() []Setting { return new(loader).list(nil) }
