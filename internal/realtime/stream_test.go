package realtime_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A reader who receives nothing is disconnected and blocks neither the sender nor other readers.
func TestSlowReaderIsCut(t *testing.T) {
	r := newFixture(t)
	user := vigiltest.User(t, r.app, authz.Nurse)
	slow, quick := r.mustSubscribe(user), r.mustSubscribe(user)
	const rounds = realtime.Backlog + 1
	for i := range rounds {
		r.note(audit.TriageReview, "Patient", "p1", "p1")
		r.round(time.Millisecond)
		if messages, open := received(t, quick); !open || len(messages) == 0 {
			t.Fatalf("round %d: the fast one is open %t and receives %v", i, open, messages)
		}
	}
	if !slow.IsDiscarded() || quick.IsDiscarded() {
		t.Errorf("slow is cut: %t, quick: %t", slow.IsDiscarded(), quick.IsDiscarded())
	}
	slow.Send(subscriptions.Message{Name: realtime.Topic}) // harmless
	slow.Discard()
}

func TestStreamKeepsOrder(t *testing.T) {
	stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
	for i := range 100 {
		stream.Send(subscriptions.Message{Name: fmt.Sprint(i)})
	}
	stream.Discard() // queued messages are still written
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

// A round sends at most its limit; the rest follows later, users' changes before those of the hourly rescoring.
func TestRoundsAreBounded(t *testing.T) {
	r := newFixture(t)
	stream := r.mustSubscribe(vigiltest.User(t, r.app, authz.Nurse))
	var aged []string
	for i := range 700 {
		aged = append(aged, fmt.Sprintf("aged %d", i))
	}
	r.publisher.Rescored(aged)
	r.round(0)
	if list := texts(t, stream); len(list) != 501 || list[0] != "patient aged 0" || list[500] != "stats" {
		t.Errorf("%d sent, first %s", len(list), list[0])
	}
	r.note(audit.ObservationCreate, "Observation", "o", "p1")
	r.round(0)
	if list := texts(t, stream); len(list) != 201 || list[0] != "patient p1" || list[200] != "patient aged 699" {
		t.Errorf("then %d sent: %s to %s", len(list), list[0], list[len(list)-1])
	}
}

// Objects that could not be rendered are sent once they can be.
func TestFailedRoundIsRetried(t *testing.T) {
	r := newFixture(t)
	stream := r.mustSubscribe(vigiltest.User(t, r.app, authz.Nurse))
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

// Changes without readers are never sent.
func TestNothingIsReplayed(t *testing.T) {
	r := newFixture(t)
	r.note(audit.AlertCreate, "Alert", "7", "p1")
	r.publisher.Rescored([]string{"p2"})
	r.round(0)
	stream := r.mustSubscribe(vigiltest.User(t, r.app, authz.Nurse))
	r.round(0)
	want(t, stream)
}

// A stream ends in time without a subscription, whether none was made or none is left, and not before.
func TestStreamWithoutSubscriptionEnds(t *testing.T) {
	for _, test := range []struct {
		name  string
		use   func(s *realtime.Stream)
		after time.Duration
		ends  bool
	}{
		{"never subscribed, before its time", func(*realtime.Stream) {}, realtime.SubscribeTimeout - 1, false},
		{"never subscribed", func(*realtime.Stream) {}, realtime.SubscribeTimeout, true},
		{"subscribed to nothing", func(s *realtime.Stream) { s.Subscribe() }, realtime.SubscribeTimeout, true},
		{"subscribed", func(s *realtime.Stream) { s.Subscribe(realtime.Topic) }, time.Hour, false},
		{"subscribed at the last moment", func(s *realtime.Stream) { time.Sleep(realtime.SubscribeTimeout - 1); s.Subscribe(realtime.Topic) }, time.Hour, false},
		{"left, before its time", func(s *realtime.Stream) { s.Subscribe(realtime.Topic); time.Sleep(time.Hour); s.Unsubscribe() }, realtime.SubscribeTimeout - 1, false},
		{"left", func(s *realtime.Stream) { s.Subscribe(realtime.Topic); time.Sleep(time.Hour); s.Unsubscribe() }, realtime.SubscribeTimeout, true},
		{"changed its mind", func(s *realtime.Stream) { s.Subscribe("a"); s.Unsubscribe(); s.Subscribe(realtime.Topic) }, time.Hour, false},
		{"left one of two", func(s *realtime.Stream) { s.Subscribe("a", realtime.Topic); s.Unsubscribe("a") }, time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock is not the world's
				stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
				test.use(stream)
				time.Sleep(test.after)
				synctest.Wait()
				if stream.IsDiscarded() != test.ends {
					t.Errorf("it has ended: %t", stream.IsDiscarded())
				}
				stream.Discard()
			})
		})
	}
}

// With many unauthenticated streams open, the publisher checks only the authenticated ones, until they end.
func TestUnauthenticatedStreamsAreIgnored(t *testing.T) {
	r := newFixture(t)
	for range 100 {
		r.app.SubscriptionsBroker().Register(realtime.NewStream(subscriptions.NewDefaultClient(), func() {}))
	}
	first, second := r.mustSubscribe(vigiltest.User(t, r.app, authz.Nurse)), r.mustSubscribe(vigiltest.User(t, r.app, authz.Provider))
	if n := r.publisher.OpenStreams(); n != 2 {
		t.Errorf("%d streams are followed", n)
	}
	r.note(audit.TriageReview, "Patient", "p1", "p1")
	r.round(time.Millisecond)
	if list, _ := received(t, second); len(list) == 0 {
		t.Error("a reader receives nothing")
	}
	r.app.SubscriptionsBroker().Unregister(first.Id())
	if n := r.publisher.OpenStreams(); n != 1 {
		t.Errorf("%d streams are followed after one ended", n)
	}
}

// A superuser's stream ends with the token; a later token extends it.
func TestStreamEndsWithTheToken(t *testing.T) {
	stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
	stream.Subscribe("patients/*")
	stream.EndsIn(0)
	for range stream.Channel() { // closed when the stream ends
	}
	if !stream.IsDiscarded() {
		t.Error("the stream is still open")
	}
	longer := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
	defer longer.Discard()
	longer.Subscribe("patients/*")
	longer.EndsIn(time.Hour)
	longer.EndsIn(2 * time.Hour)
	if longer.IsDiscarded() {
		t.Error("the stream has ended")
	}
}

func TestEmptySubscriptionDoesNotExtendTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := realtime.NewStream(subscriptions.NewDefaultClient(), func() {})
		for range 3 {
			time.Sleep(4 * time.Second)
			stream.Unsubscribe() // as PocketBase does with each list of topics
		}
		synctest.Wait()
		if !stream.IsDiscarded() {
			t.Error("the stream is open after twelve seconds")
		}
	})
}
