package emr

import (
	"encoding/json"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// fhirPatient is the part of a Patient that the service reads. Source: docs/decisions/patients.md, "Import variants".
type fhirPatient struct {
	ResourceType     string           `json:"resourceType"`
	ID               string           `json:"id"`
	Active           *bool            `json:"active"`
	Identifier       []fhirIdentifier `json:"identifier"`
	Name             []fhirName       `json:"name"`
	Telecom          []fhirTelecom    `json:"telecom"`
	Gender           string           `json:"gender"`
	BirthDate        string           `json:"birthDate"`
	DeceasedBoolean  bool             `json:"deceasedBoolean"`
	DeceasedDateTime string           `json:"deceasedDateTime"`
	Address          []fhirAddress    `json:"address"`
	Link             []struct {
		Type string `json:"type"`
	} `json:"link"`
}

// timed is the use and period of a repeating element.
type timed struct {
	Use    string     `json:"use"`
	Period fhirPeriod `json:"period"`
}

// current reports whether an element is in use: not old, begun, and not over.
func (t timed) current(now time.Time) bool { return t.Use != "old" && t.Period.contains(now) }

type fhirIdentifier struct {
	timed
	Type struct {
		Coding []struct {
			Code string `json:"code"`
		} `json:"coding"`
	} `json:"type"`
	Value string `json:"value"`
}

type fhirTelecom struct {
	timed
	System string          `json:"system"`
	Value  string          `json:"value"`
	Rank   json.RawMessage `json:"rank"` // read leniently: a side value
}

type fhirAddress struct {
	timed
	Line       []string `json:"line"`
	City       string   `json:"city"`
	State      string   `json:"state"`
	PostalCode string   `json:"postalCode"`
	Country    string   `json:"country"`
}

func readPatient(body []byte, now time.Time) (Patient, bool) {
	var f fhirPatient
	if json.Unmarshal(body, &f) != nil || f.ResourceType != "Patient" || !IsPatientID(f.ID) {
		return Patient{}, false
	}
	p := Patient{
		ID: f.ID, Gender: "unknown", MRN: f.mrn(now), Deceased: f.DeceasedBoolean || f.DeceasedDateTime != "",
		Retired: f.Active != nil && !*f.Active,
	}
	if day := f.DeceasedDateTime; len(day) >= len(time.DateOnly) {
		if _, err := time.Parse(time.DateOnly, day[:len(time.DateOnly)]); err == nil {
			p.DeceasedAt = day[:len(time.DateOnly)]
		}
	}
	for _, link := range f.Link {
		p.Replaced = p.Replaced || link.Type == "replaced-by"
	}
	p.Retired = p.Retired || p.Replaced
	if slices.Contains([]string{"male", "female", "other", "unknown"}, f.Gender) {
		p.Gender = f.Gender
	}
	p.Who = phi.Demographics{Phone: f.contact("phone", isPhone, now), Email: f.contact("email", isEmail, now), Address: f.home(now)}
	p.Who.FirstName, p.Who.LastName = f.name(now)
	if _, err := time.Parse(time.DateOnly, f.BirthDate); err == nil { // a year or month alone is no date of birth
		p.Who.DateOfBirth = f.BirthDate
	}
	return p, true
}

// identifierUses are the uses of an identifier, best first. Source: FHIR R4, value set identifier-use.
var identifierUses = []string{"usual", "official", "", "temp", "secondary"}

// mrn returns the current medical record number, one of an accepted form first: the usual one, else the official, else any.
func (f fhirPatient) mrn(now time.Time) (value string) {
	best := 2 * len(identifierUses)
	for _, id := range f.Identifier {
		text := strings.TrimSpace(id.Value)
		if text == "" || !id.current(now) || !id.hasType("MR") {
			continue
		}
		rank := slices.Index(identifierUses, id.Use)
		if rank < 0 {
			rank = slices.Index(identifierUses, "")
		}
		if !validate.MRNPattern.MatchString(text) {
			rank += len(identifierUses)
		}
		if rank < best {
			best, value = rank, text
		}
	}
	return value
}

func (id fhirIdentifier) hasType(code string) bool {
	for _, coding := range id.Type.Coding {
		if coding.Code == code {
			return true
		}
	}
	return false
}

// rank returns the rank, 1 for the preferred; the last for one that is missing or no positive integer.
func (t fhirTelecom) rank() int {
	if rank, err := strconv.Atoi(strings.Trim(string(t.Rank), `"`)); err == nil && rank > 0 {
		return rank
	}
	return 1 << 30
}

// contact returns the first current value that is usable, by rank and then in the order given; else the first current value, so that the
// import names it as left out. Source: FHIR R4, datatypes, ContactPoint.rank: 1 is preferred.
func (f fhirPatient) contact(system string, isUsable func(string) bool, now time.Time) (value string) {
	best, usable := 0, false
	for _, t := range f.Telecom {
		text := validate.CleanLine(t.Value)
		if t.System != system || text == "" || !t.current(now) {
			continue
		}
		rank := t.rank()
		ok := isUsable(text)
		if value == "" || ok && (!usable || rank < best) {
			best, usable, value = rank, ok, text
		}
	}
	return value
}

func isPhone(text string) bool {
	checks := validate.NewChecks()
	checks.Phone("phone", validate.Of(text))
	return checks.Err() == nil
}

func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

// home returns the home address, else the first, of those that are current, not for billing, and complete enough to be used.
func (f fhirPatient) home(now time.Time) *phi.Address {
	var best *phi.Address
	bestRank := -1
	for _, a := range f.Address {
		if !a.current(now) || a.Use == "billing" {
			continue
		}
		read, rank := a.read(), 0
		if read.Line1 != "" && read.City != "" {
			rank = 2
		}
		if a.Use == "home" {
			rank++
		}
		if rank > bestRank {
			best, bestRank = read, rank
		}
	}
	return best
}

func (f fhirAddress) read() *phi.Address {
	clean := validate.CleanLine
	a := &phi.Address{City: clean(f.City), State: clean(f.State), Zip: clean(f.PostalCode), Country: clean(f.Country)}
	lines := slices.DeleteFunc(slices.Clone(f.Line), func(line string) bool { return clean(line) == "" })
	if len(lines) > 0 {
		a.Line1, a.Line2 = clean(lines[0]), clean(strings.Join(lines[1:], ", "))
	}
	return a
}
