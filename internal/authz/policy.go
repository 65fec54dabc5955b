package authz

// Reach is how far a permission reaches.
type Reach int

// Reaches of the role matrix. Source: docs/decisions/roles.md, "Endpoint permissions".
const (
	None        Reach = iota // refused
	NonCritical              // alerts that are not critical
	Own                      // the caller's own data; for the portal, the linked patient
	All                      // everything
)

// Action names what a route does, for the permission check.
type Action string

// Actions of routes without a bearer token, where no role applies.
const (
	Anyone          Action = "anyone"
	SignedByGateway Action = "signed by the gateway" // the handler checks the signature
)

// Actions of all other routes.
const (
	UseOwnAccount Action = "use own account" // profile, password, second factor, preferences, inbox, push tokens
	UsePasskeys   Action = "use passkeys"
	LinkIdentity  Action = "link identity"
	SignOut       Action = "sign out"
	ReadRoles     Action = "read roles"
	RegisterUsers Action = "register users"
	ReadUsers     Action = "read users"
	ReadStaff     Action = "read staff" // the people a task can be assigned to
	ManageUsers   Action = "manage users"
	ManageClients Action = "manage clients" // and see them

	ManageWebhooks Action = "manage webhooks" // and see them

	ReadPatients            Action = "read patients"
	CreatePatients          Action = "create patients"
	UpdatePatients          Action = "update patients"
	DeletePatients          Action = "delete patients"
	ArchivePatients         Action = "archive patients"
	HoldPatients            Action = "hold patients" // suspend the expectation of readings
	ReadArchivedPatients    Action = "read archived patients"
	RestorePatients         Action = "restore patients" // and see the deleted ones
	ImportPatients          Action = "import patients"
	ReadThresholds          Action = "read thresholds"
	UpdateThresholds        Action = "update thresholds"
	ReadDefaultThresholds   Action = "read default thresholds"
	UpdateDefaultThresholds Action = "update default thresholds"
	ReadThresholdChanges    Action = "read threshold changes"
	ReadTemplates           Action = "read threshold templates"
	ManageTemplates         Action = "manage threshold templates"
	ReadNoteTemplates       Action = "read note templates"
	ManageNoteTemplates     Action = "manage note templates"
	ReadCareTeam            Action = "read care team"
	UpdateCareTeam          Action = "update care team"
	ReadConsents            Action = "read consents"
	ManageConsents          Action = "manage consents"
	ReadCaregivers          Action = "read caregivers"
	ManageCaregivers        Action = "manage caregivers"
	EndCaregivers           Action = "end caregivers"
	ReadOrders              Action = "read orders"
	RecordOrders            Action = "record orders"
	ReadEnrollment          Action = "read enrolment"

	ConnectEMR        Action = "connect EMR"
	ReadEMRConnection Action = "read EMR connection"
	TestEMR           Action = "test EMR"
	SearchEMRPatients Action = "search EMR patients"

	ReadMessages Action = "read messages"
	SendMessages Action = "send messages"
	MarkMessages Action = "mark messages as read"

	ReadQuestionnaires       Action = "read questionnaires"
	AssignQuestionnaires     Action = "assign questionnaires"
	AnswerQuestionnaires     Action = "answer questionnaires"
	ReadQuestionnaireAnswers Action = "read answers to questionnaires"

	ReadEMRContext     Action = "read EMR context"     // and have it read again
	DecideEMRProposals Action = "decide EMR proposals" // the handler also checks what is proposed

	IngestReadings      Action = "ingest readings"
	ReadObservations    Action = "read observations"
	ReadDataDays        Action = "read days with data"
	ReadVisitReport     Action = "read visit report"
	CorrectObservations Action = "correct observations"
	ReadIngestionStatus Action = "read ingestion status"
	ReadQuarantine      Action = "read quarantine"
	ManageQuarantine    Action = "manage quarantine"
	ReadUnmatchedTexts  Action = "read unmatched texts" // from numbers of no patient or of several
	CloseUnmatchedTexts Action = "close unmatched texts"
	DiscardEvents       Action = "discard events"
	ConfirmImplausible  Action = "confirm implausible readings"

	ReadTriage        Action = "read triage"
	ReviewTriage      Action = "review triage"
	ReadAlerts        Action = "read alerts"
	AcknowledgeAlerts Action = "acknowledge alerts"
	ResolveAlerts     Action = "resolve alerts"
	AnnotateAlerts    Action = "annotate alerts" // add notes, escalate
	ReadEscalations   Action = "read escalations"
	CreateEscalations Action = "create escalations"
	UpdateEscalations Action = "update escalations"
	ReadOnCall        Action = "read on-call rota"
	SetOnCall         Action = "set on-call rota"

	SnoozeAlerts       Action = "snooze alerts"
	SimulateThresholds Action = "simulate thresholds"

	ReadTimeEntries    Action = "read time entries"
	CreateTimeEntries  Action = "create time entries"
	ChangeTimeEntries  Action = "change time entries"
	AttestTimeEntries  Action = "attest time entries"
	ReadBilling        Action = "read billing"
	CreateBilling      Action = "create billing"
	ManageBilling      Action = "manage billing" // states, claims, runs
	ReadEligibility    Action = "read eligibility"
	ReadBillingReports Action = "read billing reports"
	ReadPayers         Action = "read payers"
	ManagePayers       Action = "manage payers"
	ReadPayerRates     Action = "read payer rates"
	ReadCodes          Action = "read codes" // ICD-10 and CPT

	ExportResources      Action = "export FHIR resources" // for machine clients only
	ReadFHIRPatients     Action = "read FHIR patients"
	ReadPractitioners    Action = "read practitioners"
	TransmitObservations Action = "transmit observations" // and transform
	ReadTransmissions    Action = "read transmissions"
	ProcessPending       Action = "process pending transmissions"
	RequeueTransmissions Action = "queue transmissions again" // and read the EMR's own error messages

	ReadDashboard      Action = "read dashboard"
	ReadPushDeliveries Action = "read push deliveries"
	AssignDevices      Action = "assign devices"
	ReadDevices        Action = "read devices"
	ReadHubs           Action = "read hubs"

	ReadChanges   Action = "read changes"
	ReadAudit     Action = "read audit log"
	ManageJobs    Action = "manage jobs" // see them and run them
	ReadSettings  Action = "read settings"
	ShareCharts   Action = "share charts"
	ReadAccessLog Action = "read access log"
)

type roleReach map[Role]Reach

func everyone(reach Reach) roleReach {
	r := roleReach{}
	for _, role := range Roles {
		r[role] = reach
	}
	return r
}

// only gives the named roles All and the others None.
func only(roles ...Role) roleReach {
	r := roleReach{}
	for _, role := range roles {
		r[role] = All
	}
	return r
}

// staff gives the five clinical roles All, and the billing and portal roles the given reach.
func staff(dataMonitor, patient Reach) roleReach {
	return only(Admin, ClinicalManager, Provider, Nurse, MA).with(DataMonitor, dataMonitor).with(Patient, patient)
}

// clinicians gives All to the roles that make clinical decisions.
func clinicians() roleReach { return only(Admin, ClinicalManager, Provider, Nurse) }

func (r roleReach) with(role Role, reach Reach) roleReach {
	r[role] = reach
	return r
}

// policy is the role matrix. Source: docs/decisions/roles.md, "Endpoint permissions".
var policy = map[Action]roleReach{
	UseOwnAccount: everyone(Own),
	UsePasskeys:   everyone(Own).with(Patient, None),
	LinkIdentity:  everyone(Own).with(Patient, None),
	SignOut:       everyone(All),
	ReadRoles:     everyone(All),
	RegisterUsers: only(Admin),
	ReadUsers:     only(Admin, ClinicalManager),
	ReadStaff:     staff(None, None),
	ManageUsers:   only(Admin),
	ManageClients: only(Admin),

	ManageWebhooks: only(Admin),

	ReadPatients:            staff(All, Own),
	CreatePatients:          staff(None, None),
	UpdatePatients:          staff(None, None),
	DeletePatients:          only(Admin, ClinicalManager),
	ArchivePatients:         clinicians(),
	HoldPatients:            clinicians(),
	ReadArchivedPatients:    staff(All, None),
	RestorePatients:         only(Admin),
	ImportPatients:          only(Admin, ClinicalManager, MA),
	ReadThresholds:          staff(None, Own),
	UpdateThresholds:        clinicians(),
	ReadDefaultThresholds:   staff(None, None),
	UpdateDefaultThresholds: only(Admin),
	ReadThresholdChanges:    staff(None, None),
	ReadTemplates:           staff(None, None),
	ManageTemplates:         only(Admin),
	ReadNoteTemplates:       staff(All, None),
	ManageNoteTemplates:     only(Admin, ClinicalManager),
	ReadCareTeam:            staff(All, Own),
	UpdateCareTeam:          only(Admin, ClinicalManager, Provider),
	ReadConsents:            staff(All, Own),
	ManageConsents:          staff(None, None),
	ReadCaregivers:          staff(None, Own),
	ManageCaregivers:        staff(None, Own),
	EndCaregivers:           staff(None, Own),
	ReadOrders:              staff(All, None),
	RecordOrders:            staff(None, None),
	ReadEnrollment:          staff(All, None),

	ConnectEMR:        only(Admin),
	ReadEMRConnection: only(Admin, ClinicalManager),
	TestEMR:           only(Admin),
	SearchEMRPatients: only(Admin, ClinicalManager, MA),

	ReadMessages: staff(None, Own),
	SendMessages: staff(None, Own),
	MarkMessages: staff(None, None),

	ReadQuestionnaires:       staff(None, Own),
	AssignQuestionnaires:     staff(None, None),
	AnswerQuestionnaires:     staff(None, Own),
	ReadQuestionnaireAnswers: staff(None, Own),

	ReadEMRContext:     staff(None, None),
	DecideEMRProposals: staff(None, None),

	IngestReadings:      staff(None, Own),
	ReadObservations:    staff(All, Own),
	ReadDataDays:        staff(All, None),
	ReadVisitReport:     staff(None, None),
	CorrectObservations: clinicians(),
	ReadIngestionStatus: staff(All, None),
	ReadQuarantine:      only(Admin, ClinicalManager, MA, DataMonitor),
	ManageQuarantine:    only(Admin, ClinicalManager, MA),
	ReadUnmatchedTexts:  only(Admin, ClinicalManager, Provider, Nurse, MA),
	CloseUnmatchedTexts: only(Admin, ClinicalManager, Provider, Nurse, MA),
	DiscardEvents:       staff(None, None), // the handler checks which event
	ConfirmImplausible:  clinicians(),

	ReadTriage:        staff(None, None),
	ReviewTriage:      clinicians(),
	ReadAlerts:        staff(None, None),
	AcknowledgeAlerts: clinicians().with(MA, NonCritical),
	ResolveAlerts:     clinicians(),
	AnnotateAlerts:    staff(None, None),
	ReadEscalations:   staff(None, None),
	CreateEscalations: staff(None, None),
	UpdateEscalations: clinicians(),
	ReadOnCall:        staff(None, None),
	SetOnCall:         only(Admin, ClinicalManager),

	SnoozeAlerts:       clinicians(),
	SimulateThresholds: clinicians(),

	ReadTimeEntries:    only(Admin, ClinicalManager, DataMonitor).with(Provider, Own).with(Nurse, Own).with(MA, Own),
	CreateTimeEntries:  staff(None, None),
	AttestTimeEntries:  only(ClinicalManager).with(Admin, Own).with(Provider, Own).with(Nurse, Own).with(MA, Own),
	ChangeTimeEntries:  only(Admin).with(ClinicalManager, Own).with(Provider, Own).with(Nurse, Own).with(MA, Own),
	ReadBilling:        only(Admin, ClinicalManager, Provider, DataMonitor),
	CreateBilling:      only(Admin, ClinicalManager, Provider, DataMonitor),
	ManageBilling:      only(Admin, DataMonitor),
	ReadEligibility:    only(Admin, ClinicalManager, Provider, DataMonitor),
	ReadBillingReports: only(Admin, DataMonitor),
	ReadPayers:         staff(All, None),
	ManagePayers:       only(Admin, DataMonitor),
	ReadPayerRates:     only(Admin, DataMonitor),
	ReadCodes:          staff(All, None),

	ExportResources:      only(),
	ReadFHIRPatients:     staff(None, Own),
	ReadPractitioners:    staff(All, None),
	TransmitObservations: clinicians().with(DataMonitor, All),
	ReadTransmissions:    staff(All, None),
	ProcessPending:       only(Admin),
	RequeueTransmissions: only(Admin, DataMonitor),

	ReadDashboard:      staff(All, None),
	ReadPushDeliveries: only(Admin),
	AssignDevices:      staff(None, None),
	ReadDevices:        staff(All, Own),
	ReadHubs:           staff(All, None),

	ReadChanges:   staff(All, None),
	ReadAudit:     only(Admin),
	ManageJobs:    only(Admin),
	ReadSettings:  only(Admin),
	ShareCharts:   staff(All, None),
	ReadAccessLog: only(Admin, ClinicalManager).with(Patient, Own),
}

// ReachOf returns the reach of the role's permission for the action.
func ReachOf(role Role, action Action) Reach { return policy[action][role] }

// emergencyWrites lists the writes that break-glass access allows: those that help the patient now. Other writes, such as a care-team
// membership, a threshold, a consent or a claim, outlast the emergency and stay closed, and so does every write that is not listed.
// Source: docs/decisions/security.md, "Emergency access".
var emergencyWrites = map[Action]bool{
	IngestReadings:      true,
	CorrectObservations: true, // to retract a mistyped reading
	ConfirmImplausible:  true,
	DiscardEvents:       true, // implausible readings only; the handler checks the event
	SignedByGateway:     true, // a gateway's readings are never refused
	AcknowledgeAlerts:   true,
	ResolveAlerts:       true,
	AnnotateAlerts:      true,
	CreateEscalations:   true,
	UpdateEscalations:   true,
}

// IsEmergencyWrite reports whether break-glass access allows the write.
func IsEmergencyWrite(action Action) bool { return emergencyWrites[action] }
