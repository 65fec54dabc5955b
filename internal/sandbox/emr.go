// Package sandbox simulates the systems that Vigil talks to, small enough for a laptop: an EMR that validates what it receives, a device
// gateway with patients who miss days and devices with faults, and a mail server that catches every mail. Each part implements only the
// protocol of the real system and uses no internals of Vigil, except [Populate] and [BillMonth], which fill a demo practice. All data is
// made up; do not use it in production.
package sandbox

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// EMROptions configure the EMR sandbox.
type EMROptions struct {
	// BaseURL is the sandbox's own address without a trailing slash. Empty means the host of each request.
	BaseURL string
	// PracticeCode is part of the FHIR base address; "demo" if empty.
	PracticeCode string
	// ClientID is the only client. ClientSecret, if set, is required in the interactive flow.
	ClientID, ClientSecret string
	// JWKSURL is where the client publishes its public keys.
	JWKSURL string
	// RedirectURI, if set, is the only one that the interactive flow accepts.
	RedirectURI string
	// Patients are the EMR's patients; DemoEMRPatients if nil.
	Patients []EMRPatient
	// JournalFile, if set, stores observations as JSON lines, which a restarted sandbox reads.
	JournalFile string
	// SearchCache is how long a search for Observations is answered from the cache; 0 for never. With StubbornCache also for callers that
	// request a fresh answer.
	SearchCache   time.Duration
	StubbornCache bool
	// LikeHAPI rejects an Observation of an unknown patient like HAPI FHIR: a 400 without a specific issue code.
	LikeHAPI bool
	// StrictScopes requires a read scope for reading; without it a write scope is enough.
	StrictScopes bool
	// Profile is what the EMR offers, one of EMRProfiles; "everything" if empty.
	Profile string
	// Now is the sandbox's clock and is required. Random is the source of tokens and codes; crypto/rand if nil.
	Now    func() time.Time
	Random io.Reader
	// Client fetches the JWKS; a client with a 10-second timeout if nil.
	Client *http.Client
	// OnObservation, if set, is called after each new observation, without locks.
	OnObservation func(StoredObservation)
}

// EMR simulates the practice's electronic medical record: a SMART authorization server and a FHIR R4 server for Patient and Observation,
// with faults on demand. It is an http.Handler and safe for concurrent use.
type EMR struct {
	options EMROptions
	profile emrProfile
	mux     *http.ServeMux
	keys    keyCache

	mu           sync.Mutex
	patients     []EMRPatient
	observations []*StoredObservation
	documents    []resource
	chart        []resource // of all patients, other than Observations
	granted      []string   // scopes for reading charts; nil for all
	byID         map[string]*StoredObservation
	byIdentifier map[string][]*StoredObservation
	faults       []Fault
	accessTokens map[string]grant
	refresh      map[string]grant
	codes        map[string]authorization
	seenJTI      map[string]bool
	stats        EMRStats
	journal      *journal
}

// EMRStats counts what the sandbox received since it started.
type EMRStats struct {
	Observations  int `json:"observations"`   // stored, including those from the journal
	Created       int `json:"created"`        // answered 201
	Updated       int `json:"updated"`        // new versions of stored ones
	Repeated      int `json:"repeated"`       // conditional creates that matched a stored one
	Refused       int `json:"refused"`        // Observation creates and updates answered 4xx
	Faulted       int `json:"faulted"`        // requests changed by a fault rule
	TokensIssued  int `json:"tokens_issued"`  // access tokens
	TokensRefused int `json:"tokens_refused"` // token requests answered with an error
	PatientReads  int `json:"patient_reads"`  // Patient reads and searches
	ChartReads    int `json:"chart_reads"`    // reads and searches of other resources of a chart
	Strays        int `json:"strays"`         // requests that followed a redirect with their token
	// MostPerIdentifier is the most observations stored under one identifier: above 1, something was sent twice.
	MostPerIdentifier int `json:"most_per_identifier"`
}

var practiceCode = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// NewEMR returns a sandbox with its options' patients, and the observations of its journal if it has one.
func NewEMR(options EMROptions) (*EMR, error) {
	if options.Now == nil {
		return nil, fmt.Errorf("emr sandbox: no clock given")
	}
	options.PracticeCode = cmp.Or(options.PracticeCode, "demo")
	if !practiceCode.MatchString(options.PracticeCode) {
		return nil, fmt.Errorf("emr sandbox: practice code may hold letters, digits, dot, hyphen and underscore")
	}
	options.Random = cmp.Or(options.Random, rand.Reader)
	options.Client = cmp.Or(options.Client, &http.Client{Timeout: 10 * time.Second})
	if options.Patients == nil {
		options.Patients = DemoEMRPatients()
	}
	offers, err := readProfile(cmp.Or(options.Profile, defaultProfile))
	if err != nil {
		return nil, fmt.Errorf("emr sandbox: %w", err)
	}
	e := &EMR{
		profile:      offers,
		options:      options,
		byID:         map[string]*StoredObservation{},
		byIdentifier: map[string][]*StoredObservation{},
		accessTokens: map[string]grant{},
		refresh:      map[string]grant{},
		codes:        map[string]authorization{},
		seenJTI:      map[string]bool{},
	}
	e.keys = keyCache{url: options.JWKSURL, client: options.Client, now: options.Now}
	for _, patient := range options.Patients {
		e.AddPatient(patient)
	}
	if err := e.openJournal(options.JournalFile); err != nil {
		return nil, err
	}
	e.mux = e.routes()
	return e, nil
}

// Close closes the journal.
func (e *EMR) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.journal == nil {
		return nil
	}
	return e.journal.file.Close()
}

func (e *EMR) routes() *http.ServeMux {
	fhir := "/fhir/" + e.options.PracticeCode
	cache := &searchCache{life: e.options.SearchCache, stubborn: e.options.StubbornCache, now: e.options.Now, cached: map[string]cachedAnswer{}}
	readObservation := readOrWriteObservation
	if e.options.StrictScopes {
		readObservation = onlyReadObservation
	}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"POST /oauth/token":    e.token,
		"GET /oauth/authorize": e.authorize,

		"GET " + fhir + "/metadata":                        e.metadata,
		"GET " + fhir + "/.well-known/smart-configuration": e.smartConfiguration,
		"GET " + fhir + "/Patient":                         e.bearer(readPatient, e.searchPatients),
		"GET " + fhir + "/Patient/{id}":                    e.bearer(readPatient, e.readPatient),
		"POST " + fhir + "/Observation":                    e.bearer(createObservation, e.offers("create", e.createObservation)),
		"PUT " + fhir + "/Observation/{id}":                e.bearer(updateObservation, e.offers("update", e.updateObservation)),
		"GET " + fhir + "/Observation":                     e.bearer(readObservation, cache.wrap(e.searchObservations)),
		"GET " + fhir + "/Observation/{id}":                e.bearer(readObservation, e.readObservation),
		"GET " + fhir + "/Observation/{id}/_history/1":     e.bearer(readObservation, e.readObservation),

		"POST " + fhir + "/DocumentReference":     e.bearer(createObservation, e.offersDocuments("create", e.createDocument)),
		"PUT " + fhir + "/DocumentReference/{id}": e.bearer(updateObservation, e.offersDocuments("update", e.updateDocument)),
		"GET " + fhir + "/DocumentReference":      e.bearer(readObservation, e.offersDocuments("search-type", e.searchDocuments)),
		"GET " + fhir + "/DocumentReference/{id}": e.bearer(readObservation, e.offersDocuments("read", e.readDocument)),

		"GET " + fhir + "/{type}":      e.searchChart,
		"GET " + fhir + "/{type}/{id}": e.readChart,

		"GET /sandbox/observations": e.listObservations,
		"GET /sandbox/stats":        e.showStats,
		"/sandbox/elsewhere":        e.countStray,
		"POST /sandbox/faults":      e.addFaults,
		"DELETE /sandbox/faults":    e.clearFaults,

		"/fhir/": func(w http.ResponseWriter, r *http.Request) {
			writeOutcome(w, http.StatusNotFound, "not-supported", "no such resource, interaction or practice code")
		},
	} {
		mux.HandleFunc(pattern, handler)
	}
	return mux
}

// ServeHTTP answers one request, after the first matching fault rule.
func (e *EMR) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/sandbox/") {
		e.mux.ServeHTTP(w, r)
		return
	}
	fault, found := e.nextFault(r)
	if !found {
		e.mux.ServeHTTP(w, r)
		return
	}
	e.serveFaulty(w, r, fault)
}

// base returns the sandbox's own address for this request.
func (e *EMR) base(r *http.Request) string {
	switch {
	case e.options.BaseURL != "":
		return e.options.BaseURL
	case r.TLS != nil:
		return "https://" + r.Host
	default:
		return "http://" + r.Host
	}
}

func (e *EMR) fhirBase(r *http.Request) string {
	return e.base(r) + "/fhir/" + e.options.PracticeCode
}

// secret returns a fresh opaque value of 256 random bits. The caller holds the lock, since Random may be a deterministic source in tests.
func (e *EMR) secret() (string, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(e.options.Random, raw); err != nil {
		return "", fmt.Errorf("draw a random token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller closed the connection
}
