package emr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	// maxBundle bounds the bytes read of one page of a search: an EMR that ignores _count may send thousands of entries.
	maxBundle = 4 << 20
	// maxPages bounds how many links to a next page a search follows.
	maxPages = 10
	// maxPatientID bounds the length of an id. Source: hl7.org/fhir/R4/datatypes.html#id
	maxPatientID = 64
)

// Patient is a patient as recorded in the EMR; missing values are empty.
type Patient struct {
	ID     string // without "Patient/"
	Who    phi.Demographics
	Gender string // one of FHIR's four codes; "unknown" when missing
	MRN    string
	// Deceased; Retired: the EMR no longer uses the record; Replaced: it was merged into another.
	Deceased, Retired, Replaced bool
}

// PatientQuery holds search criteria; empty ones are left out.
type PatientQuery struct {
	Name       phi.Text
	BirthDate  phi.Text // YYYY-MM-DD
	Identifier phi.Text // value, or system|value
	Count      int      // maximum number of results
}

// paramsWithoutName returns the search parameters except the name.
func (q PatientQuery) paramsWithoutName() url.Values {
	values := url.Values{"_count": {strconv.Itoa(q.Count)}}
	for name, value := range map[string]phi.Text{"birthdate": q.BirthDate, "identifier": q.Identifier} {
		if value != "" {
			values.Set(name, value.Reveal())
		}
	}
	return values
}

// search sends one search and follows links to further pages until it has count patients.
func (c *Client) search(ctx context.Context, values url.Values, count int) ([]Patient, error) {
	var found []Patient
	path := "/Patient?" + values.Encode()
	for range maxPages {
		got, _, err := c.send(ctx, call{
			method: http.MethodGet, path: path, requestID: uuid.NewString(), maxBody: maxBundle, once: true, source: c.readSource,
		})
		if err != nil {
			return nil, err
		}
		page, ok := readPatients(got.body, count-len(found), c.transport.now())
		if !ok {
			return nil, unusable(got)
		}
		for _, p := range page.patients {
			if !slices.ContainsFunc(found, func(f Patient) bool { return f.ID == p.ID }) {
				found = append(found, p)
			}
		}
		if path, ok = c.pathWithinBase(page.next); !ok || len(found) >= count {
			break
		}
	}
	return found, nil
}

// pathWithinBase returns the path of a link below the base address. Other links are not followed, since the request carries the token.
func (c *Client) pathWithinBase(link string) (below string, ok bool) {
	path, isOurs := strings.CutPrefix(link, c.baseURL)
	if !isOurs || (!strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "?")) || strings.Contains(path, "..") {
		return "", false
	}
	if u, err := url.Parse(link); err != nil || u.Fragment != "" {
		return "", false
	}
	return path, true
}

// ReadPatient reads one patient, without retries: the person at the screen can try again. The code is CodePatientNotFound when the EMR has
// no such patient. The error is always an *Error.
func (c *Client) ReadPatient(ctx context.Context, id string) (Patient, error) {
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/Patient/" + url.PathEscape(id), requestID: uuid.NewString(), maxBody: maxBody, once: true, source: c.readSource,
	})
	if err != nil {
		if e, ok := err.(*Error); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusGone) { //nolint:errorlint // always our own
			e.Code, e.Message = CodePatientNotFound, "Patient not found in EMR"
		}
		return Patient{}, err
	}
	p, ok := readPatient(got.body, c.transport.now())
	if !ok || p.ID != id {
		e := unusable(got)
		e.Attempts = attempts
		return Patient{}, e
	}
	return p, nil
}

// unusable is the error of a success with unusable content: HTML, a truncated response, another resource.
func unusable(got answer) *Error {
	return &Error{Code: CodeUnavailable, Status: got.status, Message: fmt.Sprintf("EMR answer is not usable (%d)", got.status), took: got.took}
}

// IsPatientID reports whether a text can be the id of a FHIR resource.
func IsPatientID(id string) bool { return len(id) <= maxPatientID && fhirID.MatchString(id) }

// patientPage is one page of a search.
type patientPage struct {
	patients []Patient
	next     string // link to the next page, "" on the last
}

// readPatients reads up to count patients of a searchset entry by entry, so that a huge one costs no more than its bytes. It ignores what
// follows them; a bundle with fewer patients must be complete.
func readPatients(body []byte, count int, now time.Time) (page patientPage, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	if !expectDelim(d, '{') {
		return page, false
	}
	kind := ""
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return page, false
		}
		switch name {
		case "resourceType":
			err = d.Decode(&kind)
		case "link":
			page.next, err = readNext(d)
		case "entry":
			if !page.readEntries(d, count, now) {
				return page, false
			}
			if len(page.patients) >= count {
				return page, kind == "" || kind == "Bundle"
			}
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return page, false
		}
	}
	_, err := d.Token()
	return page, err == nil && kind == "Bundle"
}

func expectDelim(d *json.Decoder, with json.Delim) bool {
	token, err := d.Token()
	return err == nil && token == with
}

func readNext(d *json.Decoder) (string, error) {
	var links []struct {
		Relation string `json:"relation"`
		URL      string `json:"url"`
	}
	if err := d.Decode(&links); err != nil {
		return "", err
	}
	for _, link := range links {
		if link.Relation == "next" {
			return link.URL, nil
		}
	}
	return "", nil
}

// readEntries reads the patients among the entries; an EMR may add an OperationOutcome with hints.
func (page *patientPage) readEntries(d *json.Decoder, count int, now time.Time) bool {
	if !expectDelim(d, '[') {
		return false
	}
	for d.More() && len(page.patients) < count {
		var entry struct {
			Resource json.RawMessage `json:"resource"`
		}
		if d.Decode(&entry) != nil {
			return false
		}
		if p, ok := readPatient(entry.Resource, now); ok {
			page.patients = append(page.patients, p)
		}
	}
	if len(page.patients) >= count {
		return true
	}
	_, err := d.Token() // the bracket
	return err == nil
}

// fhirPatient is the part of a Patient that the service reads. Source: docs/decisions/patients.md, "Import variants".
type fhirPatient struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Active       *bool  `json:"active"`
	Identifier   []struct {
		Use  string `json:"use"`
		Type struct {
			Coding []struct {
				Code string `json:"code"`
			} `json:"coding"`
		} `json:"type"`
		Value string `json:"value"`
	} `json:"identifier"`
	Name    []fhirName `json:"name"`
	Telecom []struct {
		System string `json:"system"`
		Use    string `json:"use"`
		Value  string `json:"value"`
	} `json:"telecom"`
	Gender           string        `json:"gender"`
	BirthDate        string        `json:"birthDate"`
	DeceasedBoolean  bool          `json:"deceasedBoolean"`
	DeceasedDateTime string        `json:"deceasedDateTime"`
	Address          []fhirAddress `json:"address"`
	Link             []struct {
		Type string `json:"type"`
	} `json:"link"`
}

type fhirAddress struct {
	Use        string   `json:"use"`
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
		ID: f.ID, Gender: "unknown", MRN: f.mrn(), Deceased: f.DeceasedBoolean || f.DeceasedDateTime != "",
		Retired: f.Active != nil && !*f.Active,
	}
	for _, link := range f.Link {
		p.Replaced = p.Replaced || link.Type == "replaced-by"
	}
	p.Retired = p.Retired || p.Replaced
	if slices.Contains([]string{"male", "female", "other", "unknown"}, f.Gender) {
		p.Gender = f.Gender
	}
	p.Who = phi.Demographics{Phone: f.contact("phone"), Email: f.contact("email"), Address: f.home()}
	p.Who.FirstName, p.Who.LastName = f.name(now)
	if _, err := time.Parse(time.DateOnly, f.BirthDate); err == nil { // a year or month alone is no date of birth
		p.Who.DateOfBirth = f.BirthDate
	}
	return p, true
}

func (f fhirPatient) mrn() string {
	for _, id := range f.Identifier {
		for _, code := range id.Type.Coding {
			if code.Code == "MR" && id.Use != "old" && id.Value != "" {
				return strings.TrimSpace(id.Value)
			}
		}
	}
	return ""
}

func (f fhirPatient) contact(system string) string {
	for _, t := range f.Telecom {
		if value := validate.CleanLine(t.Value); t.System == system && t.Use != "old" && value != "" {
			return value
		}
	}
	return ""
}

// home returns the home address, else the first that is neither old nor for billing.
func (f fhirPatient) home() *phi.Address {
	var chosen *fhirAddress
	for i, a := range f.Address {
		if a.Use == "home" || chosen == nil && a.Use != "old" && a.Use != "billing" {
			if chosen = &f.Address[i]; a.Use == "home" {
				break
			}
		}
	}
	if chosen == nil {
		return nil
	}
	clean := validate.CleanLine
	a := &phi.Address{City: clean(chosen.City), State: clean(chosen.State), Zip: clean(chosen.PostalCode), Country: clean(chosen.Country)}
	if len(chosen.Line) > 0 {
		a.Line1, a.Line2 = clean(chosen.Line[0]), clean(strings.Join(chosen.Line[1:], ", "))
	}
	return a
}
