package routes_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes"
)

// screen is a client's list: fetched once, then updated by messages alone.
type screen struct {
	stream *realtime.Stream
	rows   map[string]object
	last   float64
}

// follow applies messages until one reports the review of the given patient.
func (s *screen) follow(t *testing.T, reviewed string) {
	t.Helper()
	for m := range s.stream.Channel() {
		done := false
		for event := range strings.SplitSeq(strings.TrimSpace(string(m.Data)), "\n\n") {
			var message struct {
				Type string
				Seq  float64
				Data object
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "event:triage\ndata:")), &message); err != nil {
				t.Error(err)
				return
			}
			if message.Seq <= s.last {
				t.Errorf("%v follows %v", message.Seq, s.last)
				return
			}
			s.last = message.Seq
			if message.Type == "patient" {
				id := message.Data["patient_id"].(string)
				s.rows[id] = message.Data
				done = done || id == reviewed && message.Data["last_reviewed_at"] != nil
			}
		}
		if done {
			return
		}
	}
	t.Error("the stream ended")
}

// ordered returns the list by severity, computed from the rows alone.
func (s *screen) ordered() (ids []string) {
	for id := range s.rows {
		ids = append(ids, id)
	}
	number := func(id, field string) float64 { return s.rows[id][field].(float64) }
	at := func(id, field, none string) string {
		if text, ok := s.rows[id][field].(string); ok {
			moment, _ := time.Parse(time.RFC3339Nano, text)
			return moment.Format("2006-01-02T15:04:05.000000Z")
		}
		return none
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(number(b, "risk_score"), number(a, "risk_score")),
			cmp.Compare(number(b, "unacknowledged_critical"), number(a, "unacknowledged_critical")),
			cmp.Compare(at(a, "oldest_unacknowledged_at", "9999"), at(b, "oldest_unacknowledged_at", "9999")),
			cmp.Compare(at(a, "last_reviewed_at", ""), at(b, "last_reviewed_at", "")), cmp.Compare(a, b))
	})
	return ids
}

// Two browsers show the same order as the API after a burst of 500 readings.
func TestTwoScreensAgreeAfterABurst(t *testing.T) {
	c := newClinic(t)
	var patients []string
	for range 40 {
		patients = append(patients, c.enroll(nil))
	}
	quiet := slog.New(slog.DiscardHandler)
	publisher := realtime.NewPublisher(realtime.Options{
		Views: routes.LiveViews{}, Authenticate: c.auth.AuthenticatePassively, Zone: newYork, Clock: func() time.Time { return clock }, Log: quiet,
	})
	engine := ingest.NewReadingStore(ingest.Rules{PracticeZone: newYork})
	writer := ingest.NewWriter(engine, func() time.Time { return clock }, quiet, func([]ingest.Outcome) { publisher.Wake() })
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var screens []*screen
	for _, role := range []authz.Role{authz.Nurse, authz.Admin} {
		s := &screen{stream: realtime.NewStream(subscriptions.NewDefaultClient(), func() {}), rows: map[string]object{}}
		if _, err := publisher.Subscribe(c.app, s.stream, realtime.Topic, vigiltest.Token(t, c.people[role], c.now), clock); err != nil {
			t.Fatal(err)
		}
		s.stream.Subscribe(realtime.Topic)
		c.app.SubscriptionsBroker().Register(s.stream)
		for _, row := range c.request(role, "GET", "/triage/patients/?page_size=100", nil).results() {
			s.rows[row["patient_id"].(string)] = row
		}
		screens = append(screens, s)
	}
	running.Go(func() { publisher.Run(ctx, c.app) })
	running.Go(func() { writer.Run(ctx, c.app) })
	quietOne := patients[len(patients)-1] // without a reading: its message comes last
	var followers sync.WaitGroup
	for _, s := range screens {
		followers.Go(func() { s.follow(t, quietOne) })
	}

	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			for i := sender; i < 500; i += 8 {
				systolic, diastolic := float64(100+(i*37)%110), 70.0
				_, err := writer.Submit(t.Context(), ingest.Submission{
					PatientID: patients[i%(len(patients)-1)], Source: vitals.SourceGateway, By: audit.System(), ReceivedAt: clock,
					Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: clock.Add(-time.Duration(i) * time.Minute)}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic),
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	c.request(authz.Nurse, "POST", "/triage/patients/"+quietOne+"/review/", nil).want(200)
	var api []string
	for _, row := range c.request(authz.Nurse, "GET", "/triage/patients/?page_size=100", nil).results() {
		api = append(api, row["patient_id"].(string))
	}
	followers.Wait()
	for i, s := range screens {
		if got := s.ordered(); !slices.Equal(got, api) {
			t.Errorf("screen %d differs from the API:\n%s\n%s", i, fmt.Sprint(got), fmt.Sprint(api))
		}
	}
}
