// Package access knows the seven roles and what each may do: one policy table, role by action. Routes name an
// action, never a list of roles. It knows nothing of requests, tokens or storage.
package authz

import "slices"

// Role is one of the seven roles of the contract.
type Role string

// The roles, in the contract's order.
const (
	Admin           Role = "admin"
	ClinicalManager Role = "clinical_manager"
	Provider        Role = "provider"
	Nurse           Role = "nurse"
	MA              Role = "ma"
	DataMonitor     Role = "data_monitor"
	Patient         Role = "patient"
)

// Roles lists the seven roles in the contract's order.
var Roles = []Role{Admin, ClinicalManager, Provider, Nurse, MA, DataMonitor, Patient}

// Valid reports whether the role is one of the seven.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// OnTeams reports whether a practice may confine the role to the patients of the own care teams. Those who oversee or bill for
// the whole practice are not, and a portal user has one patient anyway.
func OnTeams(r Role) bool { return r == Provider || r == Nurse || r == MA }

// Describe gives the role's display name and what it is for.
func (r Role) Describe() (name, description string) {
	texts := descriptions[r]
	return texts[0], texts[1]
}

var descriptions = map[Role][2]string{
	Admin:           {"Administrator", "Full platform access including user management"},
	ClinicalManager: {"Clinical Manager", "Clinical oversight, triage management, staff coordination"},
	Provider:        {"Provider", "Patient management, triage, clinical workflows"},
	Nurse:           {"Nurse", "Monitoring, vitals review, triage"},
	MA:              {"Medical Assistant", "Medical assistant: data entry, basic monitoring"},
	DataMonitor:     {"Data Monitor", "Billing management and data monitoring"},
	Patient:         {"Patient", "Patient portal access to personal data"},
}
