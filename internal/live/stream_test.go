package live_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/live"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A reader who takes nothing is cut, and neither the sender nor anybody else waits for that.
func TestSlowReaderIsCut(t *testing.T) {
	r := newRoom(t)
	user := vigiltest.User(t, r.app, access.Nurse)
	slow, quick := r.mustListen(user), r.mustListen(user)
	const rounds = live.Backlog + 1
	for i := range rounds {
		r.note(audit.TriageReview, "Patient", "p1", "p1")
		r.round(time.Millisecond)
		if messages, open := heard(t, quick); !open || len(messages) == 0 {
			t.Fatalf("round %d: the quick one is open %t and hears %v", i, open, messages)
		}
	}
	if !slow.IsDiscarded() || quick.IsDiscarded() {
		t.Errorf("slow is cut: %t, quick: %t", slow.IsDiscarded(), quick.IsDiscarded())
	}
	slow.Send(subscriptions.Message{Name: live.Topic}) // harmless
	slow.Discard()
}

func TestStreamKeepsOrder(t *testing.T) {
	stream := live.NewStream(subscriptions.NewDefaultClient())
	for i := range 100 {
		stream.Send(subscriptions.Message{Name: fmt.Sprint(i)})
	}
	stream.Discard() // what waits is still written
	i := 0
	for m := range stream.Channel() {
		if m.Name != fmt.Sprint(i) {
			t.Fatalf("%s at place %d", m.Name, i)
		}
		i++
	}
	if i != 100 || !stream.IsDiscarded() || !stream.Client.IsDiscarded() {
		t.Errorf("%d messages", i)
	}
}

// A round tells of no more than its share; the rest has its turn later, what people did before what the hour changed.
func TestRoundsAreBounded(t *testing.T) {
	r := newRoom(t)
	stream := r.mustListen(vigiltest.User(t, r.app, access.Nurse))
	var aged []string
	for i := range 700 {
		aged = append(aged, fmt.Sprintf("aged %d", i))
	}
	r.publisher.Rescored(aged)
	r.round(0)
	if list := texts(t, stream); len(list) != 501 || list[0] != "patient aged 0" || list[500] != "stats" {
		t.Errorf("%d told, first %s", len(list), list[0])
	}
	r.note(audit.ObservationCreate, "Observation", "o", "p1")
	r.round(0)
	if list := texts(t, stream); len(list) != 201 || list[0] != "patient p1" || list[200] != "patient aged 699" {
		t.Errorf("then %d told: %s to %s", len(list), list[0], list[len(list)-1])
	}
}

// What could not be shown is told once it can be.
func TestFailureIsTriedAgain(t *testing.T) {
	r := newRoom(t)
	stream := r.mustListen(vigiltest.User(t, r.app, access.Nurse))
	r.note(audit.AlertCreate, "Alert", "7", "p1")
	r.views.fail = errors.New("locked")
	if _, err := r.publisher.Round(r.app); err == nil {
		t.Fatal("a failure is an error")
	}
	want(t, stream)
	r.views.fail = nil
	r.round(0)
	want(t, stream, "alert 000000000000007", "patient p1", "stats")
}

// Nobody is told of what happened while nobody listened.
func TestNothingIsReplayed(t *testing.T) {
	r := newRoom(t)
	r.note(audit.AlertCreate, "Alert", "7", "p1")
	r.publisher.Rescored([]string{"p2"})
	r.round(0)
	stream := r.mustListen(vigiltest.User(t, r.app, access.Nurse))
	r.round(0)
	want(t, stream)
}
