package authz

import "strings"

// Word is how a scope is told: "all", "own", "non_critical", and "" for what is refused.
func (s Scope) Word() string {
	return map[Scope]string{NonCritical: "non_critical", Own: "own", All: "all"}[s]
}

// Code is an action's name as the API writes it: "connect EMR" is connect_emr.
func (a Action) Code() string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(string(a)))
}

// Rights are what a role may do at all, and how far, by the codes of the actions: the policy as it is told to whoever shows doors.
// Source: docs/decisions/roles.md, "User permissions".
func Rights(role Role) map[string]string {
	rights := map[string]string{}
	for action := range policy {
		if reach := Reach(role, action); reach != None {
			rights[action.Code()] = reach.Word()
		}
	}
	return rights
}
