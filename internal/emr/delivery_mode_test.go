package emr_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

// declares is a CapabilityStatement with entries of resources.
func declares(resources string) reply {
	return reply{status: 200, body: `{"resourceType":"CapabilityStatement","fhirVersion":"4.0.1","rest":[{"mode":"server","resource":[` + resources + `]}]}`}
}

const (
	readOnlyObservation = `{"type":"Observation","interaction":[{"code":"read"},{"code":"search-type"}],"searchParam":[{"name":"patient"},{"name":"date"}]}`
	creatable           = `{"type":"Observation","interaction":[{"code":"create"}]}`
)

// The way follows the statement, unless the setting or an earlier success determine it.
func TestWayOfDelivery(t *testing.T) {
	for name, test := range map[string]struct {
		statement   reply
		setting     emr.DeliverySetting
		hasAccepted bool
		way         emr.DeliveryMode
		reason      emr.ModeReason
	}{
		"create":                {declares(creatable), "", false, emr.ModeObservation, emr.ModeCreateOffered},
		"read only":             {declares(readOnlyObservation), "", false, emr.ModeNone, emr.ModeNotOffered},
		"no Observation at all": {declares(`{"type":"Patient"}`), emr.DeliverAuto, false, emr.ModeNone, emr.ModeNotOffered},
		"read only, accepted":   {declares(readOnlyObservation), "", true, emr.ModeObservation, emr.ModeAcceptedBefore},
		"read only, by setting": {declares(readOnlyObservation), emr.DeliverObservation, false, emr.ModeObservation, emr.ModeBySetting},
		"two entries":           {declares(readOnlyObservation + "," + creatable), "", false, emr.ModeObservation, emr.ModeCreateOffered},
		"contradictory":         {declares(`{"type":"Observation","conditionalCreate":true}`), "", false, emr.ModeObservation, emr.ModeCreateOffered},
		"a client's statement":  {reply{status: 200, body: `{"resourceType":"CapabilityStatement","rest":[{"mode":"client","resource":[` + readOnlyObservation + `]}]}`}, "", false, emr.ModeObservation, emr.ModeNoStatement},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, metadata(test.statement), func(o *emr.Options) {
				o.Delivery, o.Capabilities = test.setting, &memoryCapabilities{known: emr.StoredCapabilities{HasAccepted: test.hasAccepted}}
			})
			mustPrepare(t, client)
			if p := client.Plan(); p.Mode != test.way || p.Reason != test.reason || client.CanReceive() != (test.way != emr.ModeNone) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A statement that is missing, unreadable, empty or huge states nothing: deliveries continue, as before it.
func TestStatementsThatSayNothing(t *testing.T) {
	huge := `{"resourceType":"CapabilityStatement","rest":[{"resource":[` + strings.Repeat(readOnlyObservation+",", 80000) + readOnlyObservation + `]}]}`
	for name, answer := range map[string]reply{
		"404": {status: 404}, "401": {status: 401}, "503": {status: 503}, "HTML": {status: 200, body: "<html>Sign in</html>"}, "empty": {status: 200, body: "{}"},
		"a list": {status: 200, body: "[]"}, "no rest": {status: 200, body: `{"resourceType":"CapabilityStatement"}`}, "huge": {status: 200, body: huge},
		"a number in place of a list": {status: 200, body: `{"resourceType":"CapabilityStatement","rest":7}`},
	} {
		for _, before := range []*emr.Offer{nil, {Create: true, ConditionalCreate: new(true)}} {
			t.Run(name, func(t *testing.T) {
				client := newClient(t, metadata(answer), func(o *emr.Options) {
					o.Capabilities = &memoryCapabilities{known: emr.StoredCapabilities{Offer: before}}
				})
				_, _ = client.Metadata(t.Context())
				p := client.Plan()
				if p.Mode != emr.ModeObservation || (p.Reason == emr.ModeNoStatement) != (before == nil) || (p.ConditionalCreate == nil) != (before == nil) {
					t.Errorf("%+v", p)
				}
				if _, e := deliver(t, client); e != nil {
					t.Error(e)
				}
				isReachable := name != "401" && name != "503" && name != "HTML" && name != "empty" && name != "a list" && name != "a number in place of a list"
				if err := client.Probe(t.Context()); (err == nil) != isReachable {
					t.Errorf("the probe: %v", err)
				}
			})
		}
	}
}

// A statement that changes overnight does not stop an EMR that has taken an Observation, across restarts too.
func TestStatementChangesOvernight(t *testing.T) {
	app := newApp(t)
	store := emr.NewCapabilityStore(app)
	start := func(statement reply) *emr.Client {
		c := newClient(t, metadata(statement), func(o *emr.Options) { o.Capabilities = store })
		mustPrepare(t, c)
		return c
	}
	if start(declares(readOnlyObservation)).CanReceive() {
		t.Error("receives although it does not say so")
	}
	client := start(declares(creatable))
	if !client.CanReceive() {
		t.Error("the new statement is not used")
	}
	if _, e := deliver(t, client); e != nil {
		t.Fatal(e)
	}
	if p := start(declares(readOnlyObservation)).Plan(); p.Reason != emr.ModeAcceptedBefore || !slices.Equal(p.ObservationSearch, []string{"date", "patient"}) || p.ReadAt.IsZero() {
		t.Errorf("%+v", p)
	}
	other := newClient(t, metadata(declares(readOnlyObservation)), func(o *emr.Options) { o.Capabilities, o.BaseURL = store, "https://other.test/fhir" })
	mustPrepare(t, other)
	if other.CanReceive() {
		t.Error("another EMR has accepted nothing")
	}
}

// A practice that delivered before anything was stored about its EMR continues.
func TestAcceptedBeforeUpgrade(t *testing.T) {
	app := newApp(t)
	id, _ := queueDelivery(t, app, patient, now)
	if _, err := app.DB().NewQuery("UPDATE transmissions SET status = 'transmitted' WHERE id = '" + id + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, metadata(declares(readOnlyObservation)), func(o *emr.Options) { o.Capabilities = emr.NewCapabilityStore(app) })
	mustPrepare(t, client)
	if p := client.Plan(); p.Reason != emr.ModeAcceptedBefore {
		t.Errorf("%+v", p)
	}
}

// The statement is read when it is missing or a day old, and not after each failure.
func TestPrepare(t *testing.T) {
	at := now
	fake := metadata(reply{status: 404}, declares(creatable))
	client := newClient(t, fake, func(o *emr.Options) { o.Capabilities, o.Now = nil, func() time.Time { return at } })
	for _, step := range []struct {
		after time.Duration
		reads int
	}{{0, 1}, {time.Minute, 1}, {15 * time.Minute, 2}, {time.Hour, 2}, {23 * time.Hour, 3}} {
		at = at.Add(step.after)
		client.Prepare(t.Context())
		if n := len(fake.requests("fhir")); n != step.reads {
			t.Errorf("after %s: read %d times, want %d", step.after, n, step.reads)
		}
	}
}

// While the EMR receives nothing readings wait, and count nowhere; administrators are notified once.
func TestEMRThatReceivesNothing(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	id, reading := queueDelivery(t, app, patient, now)
	f.receivesNothing = true
	w := newWorker(f, clock, nil)
	for range 3 {
		if round := sendDue(t, w, app, 0); round.Skipped != 1 || round.Failed != 0 {
			t.Fatalf("%+v", round)
		}
		clock.advance(24 * time.Hour)
	}
	w = newWorker(f, clock, nil) // after a restart
	sendDue(t, w, app, 0)
	check(t, app, collections.Transmissions, id, map[string]any{"status": "pending", "error_code": ""})
	client := newClient(t, newSimulatedEMR(), func(o *emr.Options) {
		o.Capabilities = &memoryCapabilities{known: emr.StoredCapabilities{Offer: &emr.Offer{}}}
	})
	counts, err := client.CountDeliveries(app, now)
	if err != nil || counts.Pending != 0 || counts.Failed != 0 || counts.SuccessRate() != 100 {
		t.Errorf("%+v, %v", counts, err)
	}
	var notices int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM announcements WHERE kind = 'service_trouble'").Row(&notices); err != nil || notices != 1 {
		t.Errorf("%d notices, %v", notices, err)
	}
	if _, down := w.Outage(); down || f.sends[reading] != 0 {
		t.Errorf("an outage, or sent %d times", f.sends[reading])
	}
	f.receivesNothing = false
	sendDue(t, w, app, 0)
	check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted"})
}
