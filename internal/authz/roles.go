// Package authz defines the seven roles and what each may do in one policy table, role by action. Routes name an action, never a list of roles.
// The package is independent of requests, tokens and storage.
package authz

import "slices"

// Role is one of the seven roles.
type Role string

// The roles in the order of the API contract.
const (
	Admin           Role = "admin"
	ClinicalManager Role = "clinical_manager"
	Provider        Role = "provider"
	Nurse           Role = "nurse"
	MA              Role = "ma"
	DataMonitor     Role = "data_monitor"
	Patient         Role = "patient"
)

// Roles lists the seven roles in the order of the API contract.
var Roles = []Role{Admin, ClinicalManager, Provider, Nurse, MA, DataMonitor, Patient}

// Valid reports whether the role is one of the seven.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// IsCareTeamRole reports whether a practice may restrict the role to patients of the user's care teams. Roles that supervise or bill for the
// whole practice are exempt, and a portal user has one patient anyway.
func IsCareTeamRole(r Role) bool { return r == Provider || r == Nurse || r == MA }

// Describe returns the role's display name and purpose.
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
