package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// searchFHIR measures the most frequent EMR searches, a patient's readings by date and the latest one, against the full
// practice.
func searchFHIR(ctx context.Context, b built, p plan, t *table) error {
	s, err := b.candidate(ctx, content{patients: p.patients, readings: p.readings})
	defer s.stop()
	if err != nil {
		return err
	}
	// Each patient's latest reading is from the last hours; earlier ones are a fixed interval apart.
	every := time.Duration(p.patients) * 7 * time.Second
	from := time.Now().UTC().Add(-time.Hour - 30*every).Format(time.DateOnly)
	for _, search := range []struct{ name, query string }{
		{"FHIR: patient and date", "&date=ge" + from},
		{"FHIR: patient, category and date", "&category=vital-signs&date=ge" + from},
		{"FHIR: patient and code, the last", "&code=85354-9&_sort=-date&_count=1"},
	} {
		to := &target{addr: s.addr, want: 200, next: func(n int64) []byte {
			return wire("GET", s.addr, "/fhir/R4/Observation?patient="+s.patients[int(n*7919)%len(s.patients)]+search.query, s.token, nil)
		}}
		l := load{clients: 1, warmUp: p.warmUp, length: p.length}
		got, err := pressRounds(ctx, p, to, l)
		if err != nil {
			return err
		}
		t.add(row{
			path: search.name, clients: l.clients, figures: got, value: float64(got.p50.Microseconds()) / 1000, unit: "ms", aim: aim{20, 5},
			note: fmt.Sprintf("%d readings", p.readings),
		})
	}
	return nil
}

// exportFHIR measures bulk exports of two sizes. Peak memory should not depend on the size. Exports are throttled, so large
// ones take long.
func exportFHIR(ctx context.Context, b built, p plan, t *table) error {
	for _, readings := range []int{50_000, 200_000} {
		if err := measureExport(ctx, b, content{patients: min(p.patients, 10_000), readings: min(p.readings, readings)}, t); err != nil {
			return err
		}
	}
	return nil
}

func measureExport(ctx context.Context, b built, c content, t *table) error {
	s, err := b.candidate(ctx, c)
	defer s.stop()
	if err != nil {
		return err
	}
	if err := s.warm(ctx); err != nil {
		return err
	}
	before := s.memory()
	token, err := s.machineToken(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	manifest, err := s.export(ctx, token)
	if err != nil {
		return err
	}
	made, peak := time.Since(began), s.memory()
	began = time.Now()
	lines, bytes, err := s.fetch(ctx, token, manifest)
	if err != nil {
		return err
	}
	if lines != c.readings {
		return fmt.Errorf("%d of %d readings were exported", lines, c.readings)
	}
	count := fmt.Sprintf("%d readings, %d files, %.0f MB", lines, len(manifest.Output), float64(bytes)/1e6)
	t.add(row{path: "bulk export, made", value: made.Seconds(), unit: "s", note: count})
	t.add(row{path: "bulk export, fetched", value: time.Since(began).Seconds(), unit: "s", note: count})
	t.add(row{path: "bulk export, memory", value: s.memory(), unit: "MB", note: fmt.Sprintf("most resident; %.0f before, %.0f once it was made", before, peak)})
	return nil
}

// machineToken returns the token of a machine client that may read everything.
func (s *server) machineToken(ctx context.Context) (string, error) {
	_, _, answer, err := s.request(ctx, "POST", "/api/v1/clients/", `{"name":"Warehouse","scopes":["system/*.rs"]}`)
	if err != nil {
		return "", err
	}
	var client struct {
		ID     string
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(answer, &client); err != nil {
		return "", err
	}
	form := "grant_type=client_credentials"
	request := fmt.Appendf(nil, "POST /api/v1/oauth/token/ HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		s.addr, base64.StdEncoding.EncodeToString([]byte(client.ID+":"+client.Secret)), len(form), form)
	_, answer, err = exchange(ctx, s.addr, request)
	if err != nil {
		return "", err
	}
	var token struct {
		Access string `json:"access_token"`
	}
	err = json.Unmarshal(answer, &token)
	return token.Access, err
}

type exportManifest struct {
	Output []struct{ URL string }
}

// export starts a bulk export and waits until its files are ready.
func (s *server) export(ctx context.Context, token string) (made exportManifest, err error) {
	at, err := s.location(ctx, token)
	if err != nil {
		return made, err
	}
	for ctx.Err() == nil {
		status, answer, err := exchange(ctx, s.addr, wire("GET", s.addr, at, token, nil))
		switch {
		case err != nil:
			return made, err
		case status == http.StatusOK:
			return made, json.Unmarshal(answer, &made)
		case status != http.StatusAccepted:
			return made, fmt.Errorf("the export answered %d: %s", status, answer)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return made, ctx.Err()
}

// location starts a bulk export and returns the path of its status endpoint.
func (s *server) location(ctx context.Context, token string) (string, error) {
	c, err := dial(ctx, s.addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.conn.Close() }() // not used again
	if _, err := c.conn.Write(wire("GET", s.addr, "/fhir/R4/$export?_type=Observation", token, nil, "Prefer", "respond-async")); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // read only
	at, err := url.Parse(answer.Header.Get("Content-Location"))
	if err == nil && answer.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("the export request was answered %d", answer.StatusCode)
	}
	return at.Path, err
}

// fetch reads every file and counts lines and bytes.
func (s *server) fetch(ctx context.Context, token string, made exportManifest) (lines int, bytes int64, err error) {
	for _, file := range made.Output {
		at, err := url.Parse(file.URL)
		if err != nil {
			return 0, 0, err
		}
		c, err := dial(ctx, s.addr)
		if err != nil {
			return 0, 0, err
		}
		counting := &lineCounter{}
		status, err := c.do(wire("GET", s.addr, at.Path, token, nil), counting)
		_ = c.conn.Close() // not used again
		if err != nil || status != http.StatusOK {
			return 0, 0, fmt.Errorf("%s answered %d: %w", at.Path, status, err)
		}
		lines, bytes = lines+counting.lines, bytes+counting.bytes
	}
	return lines, bytes, nil
}

type lineCounter struct {
	lines int
	bytes int64
}

var _ io.Writer = &lineCounter{}

// Write implements [io.Writer].
func (c *lineCounter) Write(p []byte) (int, error) {
	c.lines += strings.Count(string(p), "\n")
	c.bytes += int64(len(p))
	return len(p), nil
}
