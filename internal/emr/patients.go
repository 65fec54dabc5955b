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
	DeceasedAt                  string // the date of death, YYYY-MM-DD; "" when the record has none
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

// PatientMatches is the result of a search.
type PatientMatches struct {
	Patients []Patient
	// Truncated: the EMR has further matches that were not read, because they are at another address or after too many pages.
	Truncated bool
}

// search sends one search and follows links to further pages until it has count patients.
func (c *Client) search(ctx context.Context, values url.Values, count int) (m PatientMatches, err error) {
	address := c.baseURL + "/Patient?" + values.Encode()
	for range maxPages {
		got, _, err := c.send(ctx, call{
			method: http.MethodGet, address: address, requestID: uuid.NewString(), maxBody: maxBundle, once: true, source: c.readSource,
		})
		if err != nil {
			return PatientMatches{}, err
		}
		page, ok := readPatients(got.body, count-len(m.Patients), c.transport.now())
		if !ok {
			return PatientMatches{}, unusable(got)
		}
		for _, p := range page.patients {
			if !slices.ContainsFunc(m.Patients, func(f Patient) bool { return f.ID == p.ID }) {
				m.Patients = append(m.Patients, p)
			}
		}
		if page.next == "" || len(m.Patients) >= count {
			return m, nil
		}
		if address, ok = sameOrigin(address, page.next); !ok {
			break
		}
	}
	m.Truncated = true
	return m, nil
}

// sameOrigin resolves a link against the address of the request that returned it. Links to another origin are not followed, since the
// request carries the token. Source: RFC 3986, section 5; RFC 6454, section 4.
func sameOrigin(request, link string) (address string, ok bool) {
	from, err := url.Parse(request)
	if err != nil {
		return "", false
	}
	to, err := from.Parse(strings.TrimSpace(link))
	if err != nil || to.User != nil || to.Opaque != "" || origin(from) != origin(to) {
		return "", false
	}
	to.Scheme, to.Host, to.Fragment = from.Scheme, from.Host, ""
	return to.String(), true
}

// origin returns scheme, host and port in one spelling.
func origin(u *url.URL) string {
	port := u.Port()
	if scheme := strings.ToLower(u.Scheme); port == "" && scheme == "https" {
		port = "443"
	} else if port == "" && scheme == "http" {
		port = "80"
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
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
func unusable(got response) *Error {
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
