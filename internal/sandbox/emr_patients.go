package sandbox

import (
	"cmp"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// emrMRNSystem is the system of the EMR's own medical record numbers.
const emrMRNSystem = "urn:oid:2.16.840.1.113883.19.5"

// EMRPatient is a made-up patient of the EMR. Empty fields are left out of the resource, to test an importer with every gap of a real EMR.
type EMRPatient struct {
	ID         string // without "Patient/"
	MRN        string
	Family     string
	Given      []string
	Gender     string // male, female, other, unknown
	BirthDate  string // YYYY-MM-DD
	Phone      string
	Email      string
	Line       []string
	City       string
	State      string
	PostalCode string
	Deceased   bool
	DeceasedAt string // a date or date-time of a deceased patient
	// Deleted records are gone, Inactive ones no longer used; ReplacedBy is the id of the record into which one was merged.
	Deleted, Inactive bool
	ReplacedBy        string
}

// DemoEMRPatients are the EMR's default patients. The last four have gaps: no gender, no birth date, no MRN, and deceased.
func DemoEMRPatients() []EMRPatient {
	patients := []EMRPatient{
		{MRN: "E1001", Given: []string{"Marisol"}, Family: "Quintanar", Gender: "female", BirthDate: "1951-03-14"},
		{MRN: "E1002", Given: []string{"Everett", "James"}, Family: "Lindqvist", Gender: "male", BirthDate: "1947-11-02"},
		{MRN: "E1003", Given: []string{"Adaeze"}, Family: "Okonjo", Gender: "female", BirthDate: "1962-07-29"},
		{MRN: "E1004", Given: []string{"Tobias"}, Family: "Hallworth", Gender: "male", BirthDate: "1958-01-20"},
		{MRN: "E1005", Given: []string{"Mei-Ling"}, Family: "Zhao", Gender: "female", BirthDate: "1944-09-08"},
		{MRN: "E1006", Given: []string{"Rafael"}, Family: "Montrose", Gender: "other", BirthDate: "1969-05-17"},
		{MRN: "E1007", Given: []string{"Siobhán"}, Family: "O'Dowd", Gender: "female", BirthDate: "1955-12-31"},
		{MRN: "E1008", Given: []string{"Walter"}, Family: "Brandvold", Gender: "male", BirthDate: "1940-02-29"},
		{MRN: "E1009", Given: []string{"Ingrid"}, Family: "Sørensen", BirthDate: "1960-06-06"},
		{MRN: "E1010", Given: []string{"Jonas"}, Family: "Pettibone", Gender: "male"},
		{Given: []string{"Noor"}, Family: "Haddadin", Gender: "female", BirthDate: "1972-10-10"},
		{MRN: "E1012", Given: []string{"Clement"}, Family: "Ashgrove", Gender: "male", BirthDate: "1931-04-04", Deceased: true},
	}
	for i := range patients {
		number := strconv.Itoa(1001 + i)
		patients[i].ID = "pat-" + number
		patients[i].Phone = "+1413555" + number
		patients[i].Email = "patient" + number + "@example.org"
		patients[i].Line, patients[i].City = []string{number + " Sandbox Lane"}, "Springfield"
		patients[i].State, patients[i].PostalCode = "MA", "01103"
	}
	return patients
}

// fhir returns the patient as a US Core Patient.
func (p EMRPatient) fhir() resource {
	patient := resource{
		"resourceType": "Patient",
		"id":           p.ID,
		"meta": resource{
			"versionId": "1",
			"profile":   []string{"http://hl7.org/fhir/us/core/StructureDefinition/us-core-patient"},
		},
		"active": !p.Inactive, "gender": p.Gender, "birthDate": p.BirthDate,
	}
	if p.MRN != "" {
		patient["identifier"] = []resource{{
			"use": "usual",
			"type": resource{"coding": []resource{{
				"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "MR",
			}}},
			"system": emrMRNSystem,
			"value":  p.MRN,
		}}
	}
	if p.Family != "" || len(p.Given) > 0 {
		patient["name"] = []resource{compact(resource{"use": "official", "family": p.Family, "given": p.Given})}
	}
	var telecom []resource
	if p.Phone != "" {
		telecom = append(telecom, resource{"system": "phone", "value": p.Phone, "use": "home"})
	}
	if p.Email != "" {
		telecom = append(telecom, resource{"system": "email", "value": p.Email})
	}
	if telecom != nil {
		patient["telecom"] = telecom
	}
	if p.City != "" {
		patient["address"] = []resource{compact(resource{
			"use": "home", "line": p.Line, "city": p.City, "state": p.State, "postalCode": p.PostalCode, "country": "US",
		})}
	}
	if p.ReplacedBy != "" {
		patient["link"] = []resource{{"other": resource{"reference": "Patient/" + p.ReplacedBy}, "type": "replaced-by"}}
	}
	if p.DeceasedAt != "" {
		patient["deceasedDateTime"] = p.DeceasedAt
	} else if p.Deceased {
		patient["deceasedBoolean"] = true
	}
	return compact(patient)
}

// compact removes empty strings and lists, which FHIR JSON does not have.
func compact(r resource) resource {
	maps.DeleteFunc(r, func(_ string, value any) bool {
		list, isList := value.([]string)
		return value == "" || isList && len(list) == 0
	})
	return r
}

// AddPatient adds a patient, or replaces the one with the same id. Patients are sorted by id.
func (e *EMR) AddPatient(patient EMRPatient) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, found := e.patientAt(patient.ID)
	if !found {
		e.patients = slices.Insert(e.patients, at, EMRPatient{})
	}
	e.patients[at] = patient
}

// patientAt returns a patient's index, or where to insert it. The caller holds the lock.
func (e *EMR) patientAt(id string) (int, bool) {
	return slices.BinarySearchFunc(e.patients, id, func(p EMRPatient, id string) int { return cmp.Compare(p.ID, id) })
}

// checkSubject returns why an Observation of this patient is rejected; nil if it is not. The caller holds the lock.
func (e *EMR) checkSubject(id string) *fhirError {
	at, found := e.patientAt(id)
	switch {
	case found && !e.patients[at].Deleted:
		return nil
	case e.options.LikeHAPI && found:
		return &fhirError{http.StatusBadRequest, "processing", "Resource Patient/" + id + " is deleted, specified in path: Observation.subject"}
	case e.options.LikeHAPI:
		return &fhirError{http.StatusBadRequest, "processing", "Resource Patient/" + id + " not found, specified in path: Observation.subject"}
	}
	return &fhirError{http.StatusNotFound, "not-found", "Observation.subject references an unknown Patient"}
}

func (e *EMR) readPatient(w http.ResponseWriter, r *http.Request) {
	e.count(func(s *EMRStats) { s.PatientReads++ })
	e.mu.Lock()
	at, found := e.patientAt(r.PathValue("id"))
	var patient EMRPatient
	if found {
		patient = e.patients[at]
	}
	e.mu.Unlock()
	if !found {
		writeOutcome(w, http.StatusNotFound, "not-found", "no such Patient")
		return
	}
	if patient.Deleted {
		writeOutcome(w, http.StatusGone, "deleted", "the Patient was deleted")
		return
	}
	writeJSON(w, http.StatusOK, fhirJSON, patient.fhir())
}

// birthDates matches a date search value: a day, year or month, with or without "eq".
var birthDates = regexp.MustCompile(`^(?:eq)?(\d{4}(?:-\d{2}){0,2})$`)

func (e *EMR) searchPatients(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	birth := birthDates.FindStringSubmatch(query.Get("birthdate"))
	if query.Has("birthdate") && birth == nil {
		writeOutcome(w, http.StatusBadRequest, "value", "birthdate is YYYY, YYYY-MM or YYYY-MM-DD")
		return
	}
	identifier := parseToken(query.Get("identifier"))
	var matches []resource
	e.count(func(s *EMRStats) { s.PatientReads++ })
	e.mu.Lock()
	for _, patient := range e.patients {
		switch {
		case patient.Deleted, birth != nil && !strings.HasPrefix(patient.BirthDate, birth[1]),
			query.Has("identifier") && (patient.MRN == "" || !identifier.matches(emrMRNSystem, patient.MRN)),
			!starts(query["name"], append(slices.Clone(patient.Given), patient.Family)...),
			!starts(query["given"], patient.Given...), !starts(query["family"], patient.Family):
		default:
			matches = append(matches, patient.fhir())
		}
	}
	e.mu.Unlock()
	e.writeBundle(w, r, matches)
}

// starts reports whether each value is a prefix of a part of a name, in any case. Like HAPI it compares with each part as a whole: several
// words in one value match none of several parts.
func starts(values []string, parts ...string) bool {
	for _, value := range values {
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(strings.ToLower(part), strings.ToLower(value)) }) {
			return false
		}
	}
	return true
}

// searchCache answers a search with a recent result of the same search, as HAPI FHIR does for a minute. Source: HAPI FHIR documentation,
// "Search Result Caching".
type searchCache struct {
	life     time.Duration
	stubborn bool // answers from the cache even if the caller forbids it
	now      func() time.Time

	mu     sync.Mutex
	cached map[string]cachedAnswer
}

type cachedAnswer struct {
	at     time.Time
	answer *httptest.ResponseRecorder
}

// wrap adds the cache to a search handler.
func (c *searchCache) wrap(next http.HandlerFunc) http.HandlerFunc {
	if c.life <= 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		fresh := !c.stubborn && strings.Contains(r.Header.Get("Cache-Control"), "no-cache")
		c.mu.Lock()
		cached, found := c.cached[r.URL.RawQuery]
		c.mu.Unlock()
		if fresh || !found || c.now().Sub(cached.at) >= c.life {
			cached = cachedAnswer{c.now(), httptest.NewRecorder()}
			next(cached.answer, r)
			c.mu.Lock()
			c.cached[r.URL.RawQuery] = cached
			c.mu.Unlock()
		} else {
			w.Header().Set("X-Cache", "HIT")
		}
		w.Header().Set("Content-Type", cached.answer.Header().Get("Content-Type"))
		w.WriteHeader(cached.answer.Code)
		_, _ = w.Write(cached.answer.Body.Bytes()) // the caller closed the connection
	}
}
