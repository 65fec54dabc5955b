package authz

import (
	"maps"
	"slices"
)

// Actions lists what the policy knows.
func Actions() []Action { return slices.Sorted(maps.Keys(policy)) }
