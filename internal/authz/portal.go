package authz

// PortalScope is how far a portal account reaches one patient: as the patient, or as a caregiver who may enter readings or only read them.
type PortalScope string

// The scopes, each with all that the next has.
const (
	PortalSelf  PortalScope = "self"
	PortalEnter PortalScope = "enter"
	PortalRead  PortalScope = "read"
)

// CaregiverScopes are the scopes that a caregiver may have.
var CaregiverScopes = []string{string(PortalRead), string(PortalEnter)}

// leastScope is the least scope for the actions that a portal account may perform on a patient; others require the patient's own account.
// Source: docs/decisions/roles.md, "Caregivers".
var leastScope = map[Action]PortalScope{
	ReadPatients: PortalRead, ReadThresholds: PortalRead, ReadCareTeam: PortalRead, ReadObservations: PortalRead, ReadFHIRPatients: PortalRead, ReadDevices: PortalRead,
	ReadQuestionnaires: PortalRead, EndCaregivers: PortalRead, IngestReadings: PortalEnter, AnswerQuestionnaires: PortalEnter,
}

// May reports whether the scope covers an action on a patient that the role patient may perform.
func (s PortalScope) May(action Action) bool {
	least, listed := leastScope[action]
	switch s {
	case PortalSelf:
		return true
	case PortalEnter:
		return listed
	case PortalRead:
		return listed && least == PortalRead
	}
	return false
}

// IsOfPatient reports whether the portal performs an action on a patient, and not on its own account.
func IsOfPatient(action Action) bool {
	return ReachOf(Patient, action) == Own && action != UseOwnAccount
}
