package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vigilhealth/vigil/e2e/hapi"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// peerHeap bounds the Java heap; the default is a quarter of the machine's memory.
const peerHeap = "2 GB"

// newestSearch is a search that cannot be answered without the data.
const newestSearch = searchPath + "_sort=-date&_count=1"

// fhirServer is the peer, running or stopped.
type fhirServer struct {
	*hapi.Server
	kit     hapi.Kit
	options hapi.Options
	dir     string // of the H2 database
}

// newFHIRServer starts the peer and creates as many patients as Vigil has.
func newFHIRServer(ctx context.Context, kit hapi.Kit, folder string) (*fhirServer, error) {
	dir := filepath.Join(folder, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f := &fhirServer{kit: kit, dir: dir, options: hapi.Options{Address: freeAddr(), Database: filepath.Join(dir, "hapi"), JVM: []string{"-Xmx2g"}}}
	if _, err := f.restart(ctx); err != nil {
		return nil, err
	}
	if status, answer, err := exchange(ctx, f.options.Address, f.encodeRequest("POST", "", fhirPatients(peerPatients))); err != nil || status != http.StatusOK {
		f.Kill()
		return nil, fmt.Errorf("patients answered %d: %.300s (%w)", status, answer, err)
	}
	return f, nil
}

// restart starts the peer and returns the time until it answered a search.
func (f *fhirServer) restart(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	server, err := f.kit.Start(ctx, f.options)
	if err != nil {
		return 0, err
	}
	f.Server = server
	patience, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := f.Await(patience, newestSearch); err != nil {
		f.Kill()
		return 0, err
	}
	return time.Since(began), nil
}

// encodeRequest encodes a request for a path below the peer's FHIR base.
func (f *fhirServer) encodeRequest(method, path string, body []byte, headers ...string) []byte {
	return wire(method, f.options.Address, peerBase+path, "", body, append(headers, "Accept", fhir.ContentType)...)
}

// fhirPatients returns a transaction bundle that creates patients with chosen ids.
func fhirPatients(count int) []byte {
	entries := make([]any, count)
	for i := range entries {
		entries[i] = map[string]any{
			"request": map[string]string{"method": "PUT", "url": "Patient/" + fhirPatient(int64(i))},
			"resource": map[string]any{
				"resourceType": "Patient", "id": fhirPatient(int64(i)), "gender": "other", "birthDate": "1950-01-02",
				"name": []any{map[string]any{"family": familyNames[i%len(familyNames)], "given": []string{givenNames[i%len(givenNames)]}}},
			},
		}
	}
	body, err := json.Marshal(map[string]any{"resourceType": "Bundle", "type": "transaction", "entry": entries})
	if err != nil {
		panic(err) // maps and strings
	}
	return body
}

// fhirPatient is the id of the patient of the n-th reading on the peer; the rotation is that of [readings].
func fhirPatient(n int64) string { return fmt.Sprintf("p%d", n%peerPatients) }

// observations posts the blood pressures of [readings] in the form that Vigil delivers to an EMR.
func (f *fhirServer) observations(began time.Time) *target {
	return &target{addr: f.options.Address, want: 201, cpuTime: f.cpuTime, next: func(n int64) []byte {
		body, err := observation(n, began.Add(time.Duration(n)*time.Second)).Encode()
		if err != nil {
			panic(err) // a blood pressure always has a FHIR form
		}
		return f.encodeRequest("POST", "/Observation", body)
	}}
}

func observation(n int64, at time.Time) fhir.Resource {
	reading := vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: at.UTC().Truncate(time.Second)}.
		With(vitals.Systolic, float64(systolic(n))).With(vitals.Diastolic, 80).With(vitals.Pulse, 70)
	return fhir.DeliveredObservation(fhir.StoredObservation{
		ID: fmt.Sprintf("%08x-0000-7000-8000-%012x", n>>16, n), Reading: reading, Origin: vitals.OriginStaff, Version: 1, CreatedAt: at, UpdatedAt: at,
	}, fhirPatient(n))
}

func (f *fhirServer) cpuTime() time.Duration { return processCPU(f.PID()) }

// checkStored compares the peer's observation count with the number acknowledged.
func (f *fhirServer) checkStored(ctx context.Context, acknowledged int64) error {
	status, answer, err := exchange(ctx, f.options.Address, f.encodeRequest("GET", searchPath+"_summary=count", nil, "Cache-Control", "no-cache"))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("the count answered %d: %.300s (%w)", status, answer, err)
	}
	var found struct{ Total int64 }
	if err := json.Unmarshal(answer, &found); err != nil {
		return err
	}
	if found.Total != acknowledged {
		return fmt.Errorf("%s acknowledged %d observations, but stores %d", peer, acknowledged, found.Total)
	}
	return nil
}

// awaitPath waits until a request for path succeeds.
func (s *server) awaitPath(ctx context.Context, path string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if _, status, _, err := s.request(ctx, "GET", path, ""); err == nil && status == http.StatusOK {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s did not answer within a minute", path), ctx.Err())
}

// targets returns the targets of a question: Vigil's FHIR interface, its list, the peer, and the peer without its search
// cache.
func (m *peerBench) targets(q question) []*target {
	search := func(n int64, patient func(n int64) string) string {
		if q.ofPatient {
			return searchPath + "patient=" + patient(n) + "&" + q.search
		}
		return searchPath + q.search
	}
	one := func(n int64) string { return m.ours.patients[n%int64(len(m.ours.patients))] }
	list := func(n int64) string {
		if q.ofPatient {
			return vigilList + "&patient_id=" + one(n)
		}
		return vigilList
	}
	ours := func(path func(n int64) string) *target {
		return &target{addr: m.ours.addr, want: 200, cpuTime: m.ours.cpuTime, next: func(n int64) []byte {
			return wire("GET", m.ours.addr, path(n), m.ours.token, nil)
		}}
	}
	theirs := func(headers ...string) *target {
		return &target{addr: m.theirs.options.Address, want: 200, cpuTime: m.theirs.cpuTime, next: func(n int64) []byte {
			return m.theirs.encodeRequest("GET", search(n, fhirPatient), nil, headers...)
		}}
	}
	return []*target{
		ours(func(n int64) string { return vigilBase + search(n, one) }), ours(list), theirs(), theirs("Cache-Control", "no-cache"),
	}
}

// resultPage holds the members of a FHIR bundle or of a Vigil list that the check compares.
type resultPage struct {
	Total, Count   *int
	Entry, Results []json.RawMessage
}

// check sends one request and verifies that the answer is complete, so that all targets do the same work.
func (q question) check(ctx context.Context, to *target, stored int) error {
	status, answer, err := exchange(ctx, to.addr, to.next(to.sent.Add(1)))
	if err != nil || status != to.want {
		return fmt.Errorf("answered %d: %.300s (%w)", status, answer, err)
	}
	return q.checkAnswer(answer, stored)
}

func (q question) checkAnswer(answer []byte, stored int) error {
	var f resultPage
	if err := json.Unmarshal(answer, &f); err != nil {
		return err
	}
	wanted := min(20, stored)
	if q.ofPatient {
		wanted = min(20, stored/peerPatients)
	}
	if got := len(f.Entry) + len(f.Results); got != wanted {
		return fmt.Errorf("%d resources were returned, want %d", got, wanted)
	}
	total := f.Total
	if total == nil {
		total = f.Count
	}
	if q.total && (total == nil || *total != stored) {
		return fmt.Errorf("the total is not %d: %.300s", stored, answer)
	}
	return nil
}
