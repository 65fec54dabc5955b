package access

// emergencies are the writes that an emergency opens: those that help the patient now. All other writes last longer than an
// emergency does: a place in the care team, a bound, a consent or a claim is nothing to take by giving a reason.
// What is not listed is closed, a new write too. Source: docs/decisions/security.md, "Emergency access".
var emergencies = map[Action]bool{
	IngestReadings:      true,
	CorrectObservations: true, // whoever mistyped in the emergency takes it back
	SignedByGateway:     true, // a gateway's readings; nobody's emergency, and no reason to lose one
	AcknowledgeAlerts:   true,
	ResolveAlerts:       true,
	AnnotateAlerts:      true,
	CreateEscalations:   true,
	UpdateEscalations:   true,
}

// InEmergency reports whether a write may be made under the reason of an emergency.
func InEmergency(action Action) bool { return emergencies[action] }
