package authz

// Scope says how far a permission reaches.
type Scope int

// The scopes of the role matrix. Source: docs/decisions/roles.md, "Endpoint permissions".
const (
	None        Scope = iota // refused
	NonCritical              // alerts that are not critical
	Own                      // the caller's own data; for the portal, the linked patient
	All                      // everything
)

// Action names what a route does, as far as permission goes.
type Action string

// The actions of rows that ask for no bearer token; no role matters there.
const (
	Anyone          Action = "anyone"
	SignedByGateway Action = "signed by the gateway" // the handler checks the signature
)

// The actions that routes name, by noun.
const (
	UseOwnAccount Action = "use own account" // profile, password, second factor, preferences, inbox, push tokens
	UsePasskeys   Action = "use passkeys"
	SignOut       Action = "sign out"
	ReadRoles     Action = "read roles"
	RegisterUsers Action = "register users"
	ReadUsers     Action = "read users"
	ReadStaff     Action = "read staff" // who there is to assign to
	ManageUsers   Action = "manage users"
	ManageClients Action = "manage clients" // and see them

	ManageWebhooks Action = "manage webhooks" // and see them

	ReadPatients            Action = "read patients"
	CreatePatients          Action = "create patients"
	UpdatePatients          Action = "update patients"
	DeletePatients          Action = "delete patients"
	ArchivePatients         Action = "archive patients"
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
	ReadOrders              Action = "read orders"
	RecordOrders            Action = "record orders"
	ReadEnrolment           Action = "read enrolment"

	ConnectEMR        Action = "connect EMR"
	ReadEMRConnection Action = "read EMR connection"
	TestEMR           Action = "test EMR"
	SearchEMRPatients Action = "search EMR patients"

	IngestReadings      Action = "ingest readings"
	ReadObservations    Action = "read observations"
	ReadDataDays        Action = "read days with data"
	ReadVisitReport     Action = "read visit report"
	CorrectObservations Action = "correct observations"
	ReadIngestionStatus Action = "read ingestion status"
	ReadQuarantine      Action = "read quarantine"
	ManageQuarantine    Action = "manage quarantine"
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

	ExportResources      Action = "export FHIR resources" // closed to people: it is for clients
	ReadFHIRPatients     Action = "read FHIR patients"
	ReadPractitioners    Action = "read practitioners"
	TransmitObservations Action = "transmit observations" // and transform
	ReadTransmissions    Action = "read transmissions"
	ProcessPending       Action = "process pending transmissions"
	RequeueTransmissions Action = "queue transmissions again" // and read the EMR's own words about why they failed

	ReadDashboard  Action = "read dashboard"
	ReadDeliveries Action = "read push deliveries"
	AssignDevices  Action = "assign devices"
	ReadDevices    Action = "read devices"
	ReadHubs       Action = "read hubs"

	ReadChanges   Action = "read changes"
	ReadAudit     Action = "read audit log"
	ManageJobs    Action = "manage jobs" // see them and run them
	ReadAccessLog Action = "read access log"
)

type row map[Role]Scope

func everyone(s Scope) row {
	r := row{}
	for _, role := range Roles {
		r[role] = s
	}
	return r
}

// only gives all to the named roles, and nothing to the others.
func only(roles ...Role) row {
	r := row{}
	for _, role := range roles {
		r[role] = All
	}
	return r
}

// staff gives all to the five clinical roles; the billing and portal roles get what is said.
func staff(dataMonitor, patient Scope) row {
	return only(Admin, ClinicalManager, Provider, Nurse, MA).and(DataMonitor, dataMonitor).and(Patient, patient)
}

// clinicians gives all to those who decide about patients.
func clinicians() row { return only(Admin, ClinicalManager, Provider, Nurse) }

func (r row) and(role Role, s Scope) row {
	r[role] = s
	return r
}

// policy is the role matrix. Source: docs/decisions/roles.md, "Endpoint permissions".
var policy = map[Action]row{
	UseOwnAccount: everyone(Own),
	UsePasskeys:   everyone(Own).and(Patient, None),
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
	ReadOrders:              staff(All, None),
	RecordOrders:            staff(None, None),
	ReadEnrolment:           staff(All, None),

	ConnectEMR:        only(Admin),
	ReadEMRConnection: only(Admin, ClinicalManager),
	TestEMR:           only(Admin),
	SearchEMRPatients: only(Admin, ClinicalManager, MA),

	IngestReadings:      staff(None, Own),
	ReadObservations:    staff(All, Own),
	ReadDataDays:        staff(All, None),
	ReadVisitReport:     staff(None, None),
	CorrectObservations: clinicians(),
	ReadIngestionStatus: staff(All, None),
	ReadQuarantine:      only(Admin, ClinicalManager, MA, DataMonitor),
	ManageQuarantine:    only(Admin, ClinicalManager, MA),
	DiscardEvents:       staff(None, None), // which of them, the event decides
	ConfirmImplausible:  clinicians(),

	ReadTriage:        staff(None, None),
	ReviewTriage:      clinicians(),
	ReadAlerts:        staff(None, None),
	AcknowledgeAlerts: clinicians().and(MA, NonCritical),
	ResolveAlerts:     clinicians(),
	AnnotateAlerts:    staff(None, None),
	ReadEscalations:   staff(None, None),
	CreateEscalations: staff(None, None),
	UpdateEscalations: clinicians(),
	ReadOnCall:        staff(None, None),
	SetOnCall:         only(Admin, ClinicalManager),

	SnoozeAlerts:       clinicians(),
	SimulateThresholds: clinicians(),

	ReadTimeEntries:    only(Admin, ClinicalManager, DataMonitor).and(Provider, Own).and(Nurse, Own).and(MA, Own),
	CreateTimeEntries:  staff(None, None),
	AttestTimeEntries:  only(ClinicalManager).and(Admin, Own).and(Provider, Own).and(Nurse, Own).and(MA, Own),
	ChangeTimeEntries:  only(Admin).and(ClinicalManager, Own).and(Provider, Own).and(Nurse, Own).and(MA, Own),
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
	TransmitObservations: clinicians().and(DataMonitor, All),
	ReadTransmissions:    staff(All, None),
	ProcessPending:       only(Admin),
	RequeueTransmissions: only(Admin, DataMonitor),

	ReadDashboard:  staff(All, None),
	ReadDeliveries: only(Admin),
	AssignDevices:  staff(None, None),
	ReadDevices:    staff(All, Own),
	ReadHubs:       staff(All, None),

	ReadChanges:   staff(All, None),
	ReadAudit:     only(Admin),
	ManageJobs:    only(Admin),
	ReadAccessLog: only(Admin, ClinicalManager),
}

// Reach is how far the role's permission for the action goes; None when it has none.
func Reach(role Role, action Action) Scope { return policy[action][role] }

// emergencies are the writes that an emergency opens: those that help the patient now. All other writes last longer than an
// emergency does: a place in the care team, a bound, a consent or a claim is nothing to take by giving a reason.
// What is not listed is closed, a new write too. Source: docs/decisions/security.md, "Emergency access".
var emergencies = map[Action]bool{
	IngestReadings:      true,
	CorrectObservations: true, // whoever mistyped in the emergency takes it back
	ConfirmImplausible:  true,
	DiscardEvents:       true, // an implausible one only, which the event decides
	SignedByGateway:     true, // a gateway's readings; nobody's emergency, and no reason to lose one
	AcknowledgeAlerts:   true,
	ResolveAlerts:       true,
	AnnotateAlerts:      true,
	CreateEscalations:   true,
	UpdateEscalations:   true,
}

// InEmergency reports whether a write may be made under the reason of an emergency.
func InEmergency(action Action) bool { return emergencies[action] }
