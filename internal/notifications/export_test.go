package notifications

import (
	"maps"
	"slices"
)

// Templates lists every mail there is.
func Templates() []Template { return slices.Sorted(maps.Keys(letters)) }

// Subject is the mail's subject.
func (t Template) Subject() string { return letters[t].subject }
