package authz

// PortalScope is how far a portal account reaches one patient: as the patient, or as a caregiver who may enter readings or only read them.
type PortalScope string

// The scopes, each with all that the next has.
const (
	AsPatient PortalScope = "self"
	ToEnter   PortalScope = "enter"
	ToSee     PortalScope = "read"
)

// CaregiverScopes are the scopes that a caregiver may have.
var CaregiverScopes = []string{string(ToSee), string(ToEnter)}

// leastScope is the least scope for the actions that a portal account may perform on a patient; others require the patient's own account.
// Source: docs/decisions/roles.md, "Caregivers".
var leastScope = map[Action]PortalScope{
	ReadPatients: ToSee, ReadThresholds: ToSee, ReadCareTeam: ToSee, ReadObservations: ToSee, ReadFHIRPatients: ToSee, ReadDevices: ToSee,
	ReadQuestionnaires: ToSee, EndCaregivers: ToSee, IngestReadings: ToEnter, AnswerQuestionnaires: ToEnter,
}

// May reports whether the scope covers an action on a patient that the role patient may perform.
func (s PortalScope) May(action Action) bool {
	least, listed := leastScope[action]
	switch s {
	case AsPatient:
		return true
	case ToEnter:
		return listed
	case ToSee:
		return listed && least == ToSee
	}
	return false
}

// IsOfPatient reports whether the portal performs an action on a patient, and not on its own account.
func IsOfPatient(action Action) bool {
	return ReachOf(Patient, action) == Own && action != UseOwnAccount
}
