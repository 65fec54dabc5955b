package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The gateway's contract with a webhook: an answer of 200 within ten seconds, else three more attempts.
const answerWindow = 10 * time.Second

var gatewayRetryDelays = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

const (
	// maxInFlight bounds the concurrent requests; beyond it the simulator slows down.
	maxInFlight = 64
	reportEvery = 10 * time.Second
)

// SimulateOptions configure a simulation.
type SimulateOptions struct {
	URL    string // of the webhook
	Secret string // shared with the webhook

	// Patients are the simulated patients; if nil, Count patients are made with devices of Kinds (blood pressure if nil).
	Patients []SimulatedPatient
	Count    int
	Kinds    []vitals.Kind

	// Rate is measurements per second; 1 if 0. With more per second than there are devices, the devices' times run ahead of the clock,
	// since a device measures at most once a second.
	Rate float64
	// For ends the run and abandons retries that are not due. Events ends it after so many measurements, after every retry. Without both,
	// the run lasts until the context ends.
	For    time.Duration
	Events int

	Seed       uint64
	FaultRates map[DeliveryFault]float64 // DefaultFaultRates if nil
	// RetryScale scales the retry delays of 1, 5 and 15 minutes; 1 if 0.
	RetryScale float64

	Now    func() time.Time // required; its zone is the patients'
	Client *http.Client     // http.DefaultClient if nil
	Out    io.Writer        // a line every ten seconds and at the end, if not nil
}

// SimulationResult counts the events of a run.
type SimulationResult struct {
	Measurements int                   // planned
	Events       int                   // to be delivered: measurements, their duplicates, battery warnings
	Attempts     int                   // requests made
	Delivered    int                   // events answered 200 in time
	GaveUp       int                   // events with three failed retries
	Abandoned    int                   // events abandoned at the end of the run
	Unanswered   int                   // attempts without an answer
	Statuses     map[int]int           // answers by HTTP status
	Answers      map[string]int        // 200 answers by the status in their body
	FaultCounts  map[DeliveryFault]int // measurements by fault, perfect ones left out
}

// String returns one readable line.
func (r SimulationResult) String() string {
	parts := []string{fmt.Sprintf("%d measurements, %d of %d events delivered", r.Measurements, r.Delivered, r.Events)}
	for _, answer := range slices.Sorted(maps.Keys(r.Answers)) {
		parts = append(parts, fmt.Sprintf("%s %d", answer, r.Answers[answer]))
	}
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		if status != http.StatusOK {
			parts = append(parts, fmt.Sprintf("HTTP %d: %d", status, r.Statuses[status]))
		}
	}
	if r.Unanswered > 0 {
		parts = append(parts, fmt.Sprintf("unanswered %d", r.Unanswered))
	}
	return strings.Join(parts, ", ")
}

// Simulate sends signed events until the run ends, and returns the counts. The end of the context is a normal end.
func Simulate(ctx context.Context, options SimulateOptions) (SimulationResult, error) {
	options, err := options.complete()
	if err != nil {
		return SimulationResult{}, err
	}
	s := &simulation{
		SimulateOptions: options,
		slots:           make(chan struct{}, maxInFlight),
		tally:           SimulationResult{Statuses: map[int]int{}, Answers: map[string]int{}, FaultCounts: map[DeliveryFault]int{}},
	}
	open := ctx
	if options.For > 0 {
		var end context.CancelFunc
		open, end = context.WithTimeout(ctx, options.For)
		defer end()
	}
	s.plan(open, ctx)
	s.deliveries.Wait()
	tally := s.snapshot()
	s.report(tally)
	return tally, nil
}

// complete checks the options and sets defaults.
func (o SimulateOptions) complete() (SimulateOptions, error) {
	if o.Patients == nil {
		if len(o.Kinds) == 0 {
			o.Kinds = []vitals.Kind{vitals.BloodPressure}
		}
		o.Patients = SimulatedPatients(o.Count, o.Kinds...)
	}
	o.Rate, o.RetryScale, o.Client = cmp.Or(o.Rate, 1), cmp.Or(o.RetryScale, 1), cmp.Or(o.Client, http.DefaultClient)
	target, err := url.Parse(o.URL)
	switch {
	case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
		return o, errors.New("simulate: the webhook address must be an http or https URL")
	case o.Secret == "":
		return o, errors.New("simulate: a webhook secret is required")
	case len(o.Patients) == 0:
		return o, errors.New("simulate: at least one patient is required")
	case !slices.ContainsFunc(o.Patients, func(p SimulatedPatient) bool { return len(p.Devices) > 0 }):
		return o, errors.New("simulate: no patient has a device")
	case o.Count < 0 || !(o.Rate >= 1e-6 && o.Rate <= 1e5) || o.RetryScale < 0 || o.For < 0 || o.Events < 0:
		return o, errors.New("simulate: the rate is 0.000001 to 100000 a second; patients, duration, events and retry scale are not negative")
	case o.Now == nil:
		return o, errors.New("simulate: no clock given")
	}
	for _, kind := range o.Kinds {
		if !kind.Valid() {
			return o, fmt.Errorf("simulate: unknown kind %q", kind)
		}
	}
	return o, nil
}

// simulation is one call of Simulate.
type simulation struct {
	SimulateOptions
	slots      chan struct{}
	deliveries sync.WaitGroup

	mu    sync.Mutex
	tally SimulationResult
}

// plan plans measurements at the rate and starts their deliveries, until open ends.
func (s *simulation) plan(open, ctx context.Context) {
	simulator := NewSimulator(s.Patients, s.Seed, s.FaultRates)
	pace := time.NewTicker(time.Duration(float64(time.Second) / s.Rate))
	defer pace.Stop()
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	for planned := 0; s.Events == 0 || planned < s.Events; {
		select {
		case <-open.Done():
			return
		case <-report.C:
			s.report(s.snapshot())
		case <-pace.C:
			events := simulator.Next(s.Now())
			planned++
			s.note(func(t *SimulationResult) {
				t.Measurements++
				t.Events += len(events)
				if flaw := events[0].Fault; flaw != FaultNone {
					t.FaultCounts[flaw]++
				}
			})
			select {
			case s.slots <- struct{}{}:
			case <-open.Done():
				s.note(func(t *SimulationResult) { t.Abandoned += len(events) })
				return
			}
			s.deliveries.Go(func() { s.deliverAll(open, ctx, events) })
		}
	}
}

// deliverAll makes the first attempt of each event in order, in its slot, and starts retries separately.
func (s *simulation) deliverAll(open, ctx context.Context, events []Event) {
	defer func() { <-s.slots }()
	for _, event := range events {
		if s.attempt(ctx, event, 0) {
			s.note(func(t *SimulationResult) { t.Delivered++ })
			continue
		}
		s.deliveries.Go(func() { s.retry(open, ctx, event) })
	}
}

// retry repeats an event after each of the gateway's delays, then gives up, as the gateway does.
func (s *simulation) retry(open, ctx context.Context, event Event) {
	for i, delay := range gatewayRetryDelays {
		select {
		case <-time.After(time.Duration(float64(delay) * s.RetryScale)):
		case <-open.Done():
			s.note(func(t *SimulationResult) { t.Abandoned++ })
			return
		}
		s.slots <- struct{}{}
		delivered := s.attempt(ctx, event, i+1)
		<-s.slots
		if delivered {
			s.note(func(t *SimulationResult) { t.Delivered++ })
			return
		}
	}
	s.note(func(t *SimulationResult) { t.GaveUp++ })
}

// attempt posts an event and reports whether the gateway counts it as delivered.
func (s *simulation) attempt(ctx context.Context, event Event, retries int) bool {
	ctx, cancel := context.WithTimeout(ctx, answerWindow)
	defer cancel()
	body, err := event.Body()
	if err != nil {
		return false // a Measurement of finite numbers always encodes
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return false // complete has parsed the address
	}
	sentAt := s.Now()
	if retries == 0 {
		sentAt = sentAt.Add(-event.HeaderAge)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(gateway.SignatureHeader, gateway.Sign(s.Secret, body))
	request.Header.Set(gateway.TimestampHeader, strconv.FormatInt(sentAt.Unix(), 10))
	answer, err := s.Client.Do(request)
	if err != nil {
		s.note(func(t *SimulationResult) { t.Attempts++; t.Unanswered++ })
		return false
	}
	defer answer.Body.Close()
	var answerBody struct{ Status string }
	_ = json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(&answerBody) // only the status 200 matters to the gateway
	s.note(func(t *SimulationResult) {
		t.Attempts++
		t.Statuses[answer.StatusCode]++
		if answer.StatusCode == http.StatusOK {
			t.Answers[answerBody.Status]++
		}
	})
	lost := event.Fault == FaultLostAnswer && retries == 0
	return answer.StatusCode == http.StatusOK && !lost
}

func (s *simulation) note(change func(*SimulationResult)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}

// snapshot returns a copy of the counts.
func (s *simulation) snapshot() SimulationResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	tally := s.tally
	tally.Statuses, tally.Answers, tally.FaultCounts = maps.Clone(tally.Statuses), maps.Clone(tally.Answers), maps.Clone(tally.FaultCounts)
	return tally
}

func (s *simulation) report(tally SimulationResult) {
	if s.Out != nil {
		_, _ = fmt.Fprintln(s.Out, "gateway simulator:", tally) // a lost line is no lost event
	}
}
