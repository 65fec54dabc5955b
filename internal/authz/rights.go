package authz

import "strings"

// Code returns the scope as the API writes it: "all", "own", "non_critical", or "" if refused.
func (s Scope) Code() string {
	return map[Scope]string{NonCritical: "non_critical", Own: "own", All: "all"}[s]
}

// Code returns the action as the API writes it: "connect EMR" is connect_emr.
func (a Action) Code() string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(string(a)))
}

// Rights returns the role's permissions and their scopes, by action code, for clients that hide what a user may not do.
// Source: docs/decisions/roles.md, "User permissions".
func Rights(role Role) map[string]string {
	rights := map[string]string{}
	for action := range policy {
		if reach := Reach(role, action); reach != None {
			rights[action.Code()] = reach.Code()
		}
	}
	return rights
}
