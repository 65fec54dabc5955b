package authz

import "strings"

// Code returns the reach as the API writes it: "all", "own", "non_critical", or "" if refused.
func (r Reach) Code() string {
	return map[Reach]string{NonCritical: "non_critical", Own: "own", All: "all"}[r]
}

// Code returns the action as the API writes it: "connect EMR" is connect_emr.
func (a Action) Code() string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(string(a)))
}

// Rights returns the role's permissions and their reach, by action code, for clients that hide what a user may not do.
// Source: docs/decisions/roles.md, "User permissions".
func Rights(role Role) map[string]string {
	rights := map[string]string{}
	for action := range policy {
		if reach := ReachOf(role, action); reach != None {
			rights[action.Code()] = reach.Code()
		}
	}
	return rights
}
