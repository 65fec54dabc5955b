package authz

import (
	"maps"
	"slices"
)

// Actions lists the actions of the policy.
func Actions() []Action { return slices.Sorted(maps.Keys(policy)) }
