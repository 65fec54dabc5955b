package audit

import (
	"strconv"
	"strings"
)

// The FHIR R4 AuditEvent follows IHE Basic Audit Log Patterns. Source: docs/decisions/security.md, "Audit reading and FHIR form".

const (
	systemEventType   = "http://terminology.hl7.org/CodeSystem/audit-event-type"
	systemDICOM       = "http://dicom.nema.org/resources/ontology/DCM"
	systemInteraction = "http://hl7.org/fhir/restful-interaction"
	systemObjectType  = "http://terminology.hl7.org/CodeSystem/audit-entity-type"
	systemObjectRole  = "http://terminology.hl7.org/CodeSystem/object-role"
	systemSourceType  = "http://terminology.hl7.org/CodeSystem/security-source-type"
	systemParticipant = "http://terminology.hl7.org/CodeSystem/extra-security-role-type"
)

type coding struct {
	System  string `json:"system"`
	Code    string `json:"code"`
	Display string `json:"display,omitempty"`
}

type concept struct {
	Coding []coding `json:"coding,omitempty"`
	Text   string   `json:"text,omitempty"`
}

type identifier struct {
	Value string `json:"value"`
}

type reference struct {
	Reference  string      `json:"reference,omitempty"`
	Identifier *identifier `json:"identifier,omitempty"`
	Display    string      `json:"display,omitempty"`
}

type network struct {
	Address string `json:"address"`
	Type    string `json:"type"` // 2 is an IP address
}

type agent struct {
	Type      concept    `json:"type"`
	Role      []concept  `json:"role,omitempty"`
	Who       *reference `json:"who,omitempty"`
	AltID     string     `json:"altId,omitempty"`
	Name      string     `json:"name,omitempty"`
	Requestor bool       `json:"requestor"`
	Network   *network   `json:"network,omitempty"`
}

type source struct {
	Site     string    `json:"site,omitempty"`
	Observer reference `json:"observer"`
	Type     []coding  `json:"type"`
}

type detail struct {
	Type        string `json:"type"`
	ValueString string `json:"valueString"`
}

type entity struct {
	What   *reference `json:"what,omitempty"`
	Type   *coding    `json:"type,omitempty"`
	Role   *coding    `json:"role,omitempty"`
	Detail []detail   `json:"detail,omitempty"`
}

// FHIRMeta is the FHIR meta element. The FHIR API serves it with version 1, since an entry never changes.
type FHIRMeta struct {
	VersionID   string `json:"versionId"`
	LastUpdated string `json:"lastUpdated"`
}

// FHIRAuditEvent is a FHIR R4 AuditEvent resource.
type FHIRAuditEvent struct {
	ResourceType string    `json:"resourceType"`
	ID           string    `json:"id"`
	Meta         *FHIRMeta `json:"meta,omitempty"`
	Type         coding    `json:"type"`
	Subtype      []coding  `json:"subtype"`
	Action       string    `json:"action"`
	Recorded     string    `json:"recorded"`
	Outcome      string    `json:"outcome"`
	OutcomeDesc  string    `json:"outcomeDesc,omitempty"`
	Agent        []agent   `json:"agent"`
	Source       source    `json:"source"`
	Entity       []entity  `json:"entity,omitempty"`
}

// interactions are the RESTful interactions by action; Execute is an operation.
var interactions = map[string]coding{
	string(Create):  {systemInteraction, "create", "create"},
	string(Read):    {systemInteraction, "read", "read"},
	string(Update):  {systemInteraction, "update", "update"},
	string(Delete):  {systemInteraction, "delete", "delete"},
	string(Execute): {systemInteraction, "operation", "operation"},
}

// FHIR returns the entry as an AuditEvent. It contains ids but no changed values. observer is the public URL of the service.
func (s StoredEntry) FHIR(observer string) FHIRAuditEvent {
	event := FHIRAuditEvent{
		ResourceType: "AuditEvent", ID: strconv.FormatInt(s.Number(), 10),
		Type: coding{systemEventType, "rest", "RESTful Operation"}, Subtype: []coding{interactions[s.Action]},
		Action: s.Action, Recorded: s.RecordedAt, Outcome: s.Outcome,
		Agent:  []agent{s.requestor()},
		Source: source{Site: "vigil", Observer: reference{Display: observer}, Type: []coding{{systemSourceType, "4", "Application Server"}}},
	}
	if strings.HasPrefix(s.Event, "auth.") {
		event.Type = coding{systemDICOM, "110114", "User Authentication"}
		switch Event(s.Event) {
		case Login, LoginFailed:
			event.Subtype = []coding{{systemDICOM, "110122", "Login"}}
		case Logout:
			event.Subtype = []coding{{systemDICOM, "110123", "Logout"}}
		}
	}
	if s.Outcome != string(Success) {
		event.OutcomeDesc = s.Event
	}
	if s.Client != "" || s.SourceIP != "" {
		client := agent{Type: dicom("110153", "Source Role ID"), Name: s.Client}
		if s.SourceIP != "" {
			client.Network = &network{s.SourceIP, "2"}
		}
		event.Agent = append(event.Agent, client)
	}
	event.Agent = append(event.Agent, agent{Type: dicom("110152", "Destination Role ID"), Who: &reference{Display: observer}})
	event.Entity = s.entities()
	return event
}

func dicom(code, display string) concept {
	return concept{Coding: []coding{{systemDICOM, code, display}}}
}

// Versioned returns the event with the meta element of its only version.
func (e FHIRAuditEvent) Versioned() FHIRAuditEvent {
	e.Meta = &FHIRMeta{"1", e.Recorded}
	return e
}

// requestor returns the agent for the actor, the only one with requestor true.
func (s StoredEntry) requestor() agent {
	who := agent{Requestor: true, Type: concept{Coding: []coding{{systemParticipant, "humanuser", "human user"}}}}
	if t := ActorType(s.ActorType); t != ByUser && t != BySuperuser {
		who.Type = concept{Text: s.ActorType}
	}
	switch {
	case s.ActorName != "":
		who.Who, who.Name = &reference{Identifier: &identifier{s.ActorID}, Display: s.ActorType + " " + s.ActorID}, s.ActorName
	case s.ActorEmail != "":
		who.Who = &reference{Identifier: &identifier{s.ActorEmail}, Display: s.ActorType + " " + s.ActorID}
	default:
		who.Who = &reference{Display: strings.TrimSpace(s.ActorType + " " + s.ActorID)}
	}
	if s.ActorRole != "" {
		who.Role = []concept{{Text: s.ActorRole}}
	}
	return who
}

// entities returns the patient, the resource, the request and the event, as far as recorded.
func (s StoredEntry) entities() (list []entity) {
	if s.Patient != "" {
		list = append(list, entity{
			What: &reference{Reference: "Patient/" + s.Patient},
			Type: &coding{systemObjectType, "1", "Person"}, Role: &coding{systemObjectRole, "1", "Patient"},
		})
	}
	if s.ResourceType != "" && (s.ResourceType != "Patient" || s.Patient == "") {
		data := entity{
			What: &reference{Display: strings.TrimSuffix(s.ResourceType+"/"+s.ResourceID, "/")},
			Type: &coding{systemObjectType, "2", "System Object"}, Role: &coding{systemObjectRole, "4", "Domain Resource"},
		}
		if s.ResourceType == "Observation" && s.ResourceID != "" {
			data.What = &reference{Reference: "Observation/" + s.ResourceID}
		}
		list = append(list, data)
	}
	if s.RequestID != "" {
		list = append(list, entity{
			What: &reference{Identifier: &identifier{s.RequestID}},
			Type: &coding{"https://profiles.ihe.net/ITI/BALP/CodeSystem/BasicAuditEntityType", "XrequestId", ""},
		})
	}
	return append(list, entity{Detail: []detail{{"event", s.Event}}, Type: &coding{systemObjectType, "2", "System Object"}})
}
