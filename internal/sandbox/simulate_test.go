package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const webhookSecret = "whsec_test"

// webhook is a service behind an http.Client without a network, so that time can be simulated.
type webhook struct {
	answer func(attempt int, body []byte) (int, error)

	mu       sync.Mutex
	attempts map[string]int // by body
	bad      []string
	order    []time.Time
}

func (w *webhook) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	service := gateway.ContractAdapter{Secrets: gateway.Secrets{Current: webhookSecret}, Tolerance: 30 * time.Minute}
	status := http.StatusOK
	if _, err := service.Verify(request.Header, body, time.Now()); err != nil {
		w.bad = append(w.bad, err.Error())
		status = http.StatusUnauthorized
	}
	w.attempts[string(body)]++
	w.order = append(w.order, time.Now())
	said := "accepted"
	if w.attempts[string(body)] > 1 {
		said = "duplicate"
	}
	if status == http.StatusOK && w.answer != nil {
		if status, err = w.answer(w.attempts[string(body)], body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"status":%q}`, said)))}, nil
}

// simulate runs in a bubble of fake time.
func simulate(t *testing.T, change func(*SimulateOptions), answer func(int, []byte) (int, error), check func(*testing.T, SimulationResult, *webhook)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := &webhook{answer: answer, attempts: map[string]int{}}
		options := SimulateOptions{
			URL: "http://vigil.example/api/v1/gateway/webhook/", Secret: webhookSecret, Count: 40, Rate: 10, Seed: 1,
			FaultRates: map[DeliveryFault]float64{}, Now: time.Now, Client: &http.Client{Transport: service},
		}
		change(&options)
		tally, err := Simulate(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		check(t, tally, service)
	})
}

func TestSimulateRate(t *testing.T) {
	var out bytes.Buffer
	simulate(t, func(o *SimulateOptions) { o.For, o.Out = time.Minute+time.Millisecond, &out }, nil, func(t *testing.T, tally SimulationResult, service *webhook) {
		if tally.Measurements != 600 || tally.Delivered != tally.Events || tally.Statuses[200] != tally.Attempts || len(service.bad) != 0 {
			t.Errorf("tally %+v, refused %v", tally, service.bad)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 7 || !strings.Contains(out.String(), "600 measurements") {
			t.Errorf("%d lines:\n%s", lines, out.String())
		}
	})
}

func TestSimulateRetriesLikeTheGateway(t *testing.T) {
	failTwice := func(attempt int, _ []byte) (int, error) {
		switch attempt {
		case 1:
			return 0, errors.New("connection refused")
		case 2:
			return 503, nil
		}
		return 200, nil
	}
	simulate(t, func(o *SimulateOptions) { o.Events = 1 }, failTwice, func(t *testing.T, tally SimulationResult, service *webhook) {
		if tally.Delivered != 1 || tally.Attempts != 3 || tally.Unanswered != 1 || tally.Statuses[503] != 1 {
			t.Errorf("tally %+v", tally)
		}
		if first, second := service.order[1].Sub(service.order[0]), service.order[2].Sub(service.order[1]); first != time.Minute || second != 5*time.Minute {
			t.Errorf("waited %s, then %s", first, second)
		}
	})
	never := func(int, []byte) (int, error) { return 500, nil }
	simulate(t, func(o *SimulateOptions) { o.Events, o.RetryScale = 2, 0.1 }, never, func(t *testing.T, tally SimulationResult, service *webhook) {
		if tally.GaveUp != 2 || tally.Attempts != 8 {
			t.Errorf("tally %+v", tally)
		}
	})
	simulate(t, func(o *SimulateOptions) { o.For = 30*time.Second + time.Millisecond }, never, func(t *testing.T, tally SimulationResult, service *webhook) {
		if tally.Abandoned != tally.Events || tally.Attempts != tally.Events {
			t.Errorf("tally %+v", tally)
		}
	})
}

func TestSimulateFaults(t *testing.T) {
	only := func(flaw DeliveryFault) func(*SimulateOptions) {
		return func(o *SimulateOptions) { o.Events, o.FaultRates = 1, map[DeliveryFault]float64{flaw: 1} }
	}
	for flaw, want := range map[DeliveryFault]struct{ accepted, duplicate, unauthorized int }{
		FaultDuplicate:   {1, 1, 0},
		FaultLostAnswer:  {1, 1, 0},
		FaultStaleHeader: {0, 1, 1}, // rejected, then delivered with a fresh header
		FaultClockSkew:   {1, 0, 0},
	} {
		simulate(t, only(flaw), nil, func(t *testing.T, tally SimulationResult, service *webhook) {
			if tally.Delivered != tally.Events || tally.Answers["accepted"] != want.accepted ||
				tally.Answers["duplicate"] != want.duplicate || tally.Statuses[401] != want.unauthorized || tally.FaultCounts[flaw] != 1 {
				t.Errorf("%s: tally %+v", flaw, tally)
			}
		})
	}
}

func TestSimulateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		service := &webhook{attempts: map[string]int{}}
		tally, err := Simulate(ctx, SimulateOptions{
			URL: "https://vigil.example/", Secret: webhookSecret, Count: 3, Kinds: vitals.Kinds, Now: time.Now, Client: &http.Client{Transport: service},
		})
		if err != nil || tally.Measurements < 4 {
			t.Errorf("tally %+v, err %v", tally, err)
		}
	})
}

func TestSimulateRejects(t *testing.T) {
	good := SimulateOptions{URL: "http://x.example/", Secret: "s", Count: 1, Now: time.Now}
	for name, spoil := range map[string]func(*SimulateOptions){
		"address":   func(o *SimulateOptions) { o.URL = "x.example" },
		"secret":    func(o *SimulateOptions) { o.Secret = "" },
		"nobody":    func(o *SimulateOptions) { o.Count = 0 },
		"less":      func(o *SimulateOptions) { o.Count = -1 },
		"no device": func(o *SimulateOptions) { o.Patients = []SimulatedPatient{{Number: 1}} },
		"rate":      func(o *SimulateOptions) { o.Rate = -1 },
		"kind":      func(o *SimulateOptions) { o.Kinds = []vitals.Kind{"pulse"} },
		"no clock":  func(o *SimulateOptions) { o.Now = nil },
	} {
		options := good
		spoil(&options)
		if _, err := Simulate(t.Context(), options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
