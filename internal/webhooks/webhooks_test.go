package webhooks_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vigilhealth/vigil/collections"
)

// A webhook receives the events it subscribes to, from its creation on, once each, with identifiers only.
func TestSubscribedEventsAreSent(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	p.reading("p1", 1)
	p.views["observation p1-2"] = map[string]any{"weight_kg": 81}
	hook := p.hook(r, "observation.created alert.raised")
	p.reading("p1", 2)
	p.run(`INSERT INTO alerts (id, patient, status, level, type) VALUES ('000000000000012', 'p1', 'active', 'warning', 'pulse')`,
		`UPDATE alerts SET status = 'resolved'`, `UPDATE observations SET status = 'entered_in_error'`)
	p.runOnce()
	p.runOnce()
	want := []string{
		`{"type":"observation.created","timestamp":"*","data":{"type":"observation","id":"p1-2","patient_id":"p1"}}`,
		`{"type":"alert.raised","timestamp":"*","data":{"type":"alert","id":12,"patient_id":"p1"}}`,
	}
	for i, g := range r.accepted {
		if i < len(want) && strings.Replace(g.Raw, g.Timestamp, "*", 1) != want[i] {
			t.Errorf("%s", g.Raw)
		}
		if _, err := time.Parse(time.RFC3339, g.Timestamp); err != nil {
			t.Error(err)
		}
	}
	if len(r.all) != len(want) {
		t.Errorf("%d requests", len(r.all))
	}
	for i, d := range p.log(hook) {
		if d.Status != collections.WebhookDelivered || d.ID != r.accepted[i].ID || d.Code != 200 || d.Attempts != 1 || d.Delivered == "" || d.Error != "" {
			t.Errorf("%+v", d)
		}
	}
}

// Values are sent only if the webhook includes them, as the API shows them at that time; a deleted resource is null.
func TestIncludeValues(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	p.hook(r, "observation.created", `"include_values": true`)
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.views["observation p1-1"] = map[string]any{"weight_kg": 81.5}
	p.runOnce()
	if want := []string{
		`"data":{"type":"observation","id":"p1-1","patient_id":"p1","object":{"weight_kg":81.5}}}`, `"patient_id":"p1","object":null}}`,
	}; len(r.accepted) != 2 || !strings.HasSuffix(r.accepted[0].Raw, want[0]) || !strings.HasSuffix(r.accepted[1].Raw, want[1]) {
		t.Errorf("%+v", r.accepted)
	}
	var disclosed []string
	if err := p.app.DB().NewQuery(`SELECT patient FROM audit_log WHERE event = 'webhook.send'`).Column(&disclosed); err != nil || len(disclosed) != 2 || disclosed[0] != "p1" {
		t.Errorf("the audit trail records the disclosure as %v, %v", disclosed, err)
	}
}

// A receiver with only the old secret can verify requests for a day after a rotation; one with only the new secret can at once.
func TestSecretRotation(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created")
	old := r.secrets[0]
	rotated, err := p.engine.RotateSecret(p.app, hook, admin, p.clock())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{old, rotated.Secret} {
		if key, err := standard.NewWebhook(secret); err != nil || !strings.HasPrefix(secret, "whsec_") || key == nil {
			t.Errorf("%v", err)
		}
	}
	if fmt.Sprintf("%v %+v %s", rotated, rotated, rotated) != strings.Repeat("[webhook secret] ", 2)+"[webhook secret]" {
		t.Error("a secret is printed")
	}
	for i, secret := range []string{old, rotated.Secret} {
		r.secrets = []string{secret}
		p.reading("p1", i)
		p.runOnce()
	}
	p.advance(24 * time.Hour)
	p.reading("p1", 2)
	p.runOnce()
	if len(r.accepted) != 3 {
		t.Errorf("%d requests", len(r.accepted))
	}
	if diff := cmp.Diff([]int{2, 2, 1}, r.signatures); diff != "" {
		t.Error(diff)
	}
}

// Events of a patient are sent in order. A failing event delays only that patient at that receiver.
func TestOrderPerPatient(t *testing.T) {
	p := newPractice(t)
	stuck := func(g request) int {
		if g.Data["id"] == "p1-1" {
			return 500
		}
		return 204
	}
	r, other := p.receiver(stuck), p.receiver(nil)
	hook := p.hook(r, "observation.created")
	p.hook(other, "observation.created")
	for n := range 4 {
		for _, patient := range []string{"p1", "p2", "p3"} {
			p.reading(patient, n)
		}
	}
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-0"}, ids(r.accepted, "p1")); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p2", "p3"} {
		if diff := cmp.Diff([]string{patient + "-0", patient + "-1", patient + "-2", patient + "-3"}, ids(r.accepted, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if len(other.accepted) != 12 {
		t.Errorf("the other receiver has %d", len(other.accepted))
	}
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2", "p1-3"}, ids(other.accepted, "p1")); diff != "" {
		t.Error(diff)
	}
	if pending := p.count(hook, "pending"); pending != 3 {
		t.Errorf("%d are pending", pending)
	}
	p.advance(4 * time.Second)
	if n := len(r.all); n != 10 {
		t.Errorf("%d requests before the retry is due", n)
	}
	r.setAnswer(nil)
	p.advance(time.Second)
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2", "p1-3"}, ids(r.accepted, "p1")); diff != "" {
		t.Error(diff)
	}
	ids := map[string]int{}
	for _, g := range r.all {
		ids[g.ID]++
	}
	if len(ids) != 12 {
		t.Errorf("%d ids for 12 events: a retry has a new id", len(ids))
	}
}

// After the last retry of the schedule the delivery becomes a dead letter, administrators are notified, and the patient's next events continue. An
// administrator can requeue it.
func TestDeadLetterAndRequeue(t *testing.T) {
	p := newPractice(t)
	poison := func(g request) int {
		if g.Data["id"] == "p1-1" {
			return 422
		}
		return 200
	}
	r := p.receiver(poison)
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.runOnce()
	waits := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, wait := range waits {
		if d := p.log(hook)[0]; d.Attempts != i+1 || d.Status != "pending" || d.DueAt != collections.FormatInstant(p.clock().Add(wait)) || d.Code != 422 {
			t.Fatalf("after %d waits: %+v", i, d)
		}
		p.advance(wait)
	}
	if d := p.log(hook)[0]; d.Attempts != 10 || d.Status != "failed" || d.DueAt != "" || d.Error != "status" {
		t.Errorf("%+v", d)
	}
	p.advance(time.Second)
	if diff := cmp.Diff([]string{"p1-2"}, ids(r.accepted, "")); diff != "" {
		t.Error(diff)
	}
	if notices := p.notices(); len(notices) != 1 || strings.Contains(notices[0], r.URL) {
		t.Errorf("notices to administrators: %q", notices)
	}
	p.advanceInSteps(48*time.Hour, time.Hour)
	if n := len(r.all); n != 12 { // one more request after the receiver accepted an event
		t.Errorf("%d requests", n)
	}
	r.setAnswer(nil)
	again, err := p.engine.Retry(p.app, p.log(hook)[0].ID, admin, p.clock())
	if err != nil || again.Status != "pending" || again.Attempts != 11 {
		t.Errorf("%+v, %v", again, err)
	}
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-2", "p1-1"}, ids(r.accepted, "")); diff != "" {
		t.Error(diff)
	}
	if d := p.log(hook)[0]; d.Status != "delivered" || d.Attempts != 12 {
		t.Errorf("%+v", d)
	}
	if _, err := p.engine.Retry(p.app, p.log(hook)[1].ID, admin, p.clock()); err != nil {
		t.Errorf("a delivered event cannot be sent again: %v", err)
	}
	p.runOnce()
	if first, last := r.accepted[0], r.accepted[len(r.accepted)-1]; first.ID != last.ID || len(r.accepted) != 3 {
		t.Errorf("sent again under a different id: %v, %v", first, last)
	}
	if slices.Index(p.outcomes, "failed") < 0 {
		t.Errorf("outcomes: %v", p.outcomes)
	}
}

// A receiver that is down for a day gets every event in order soon after it is back.
func TestOutageOfADay(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(503))
	hook := p.hook(r, "observation.created")
	var want []string
	for hour := range 24 {
		for _, patient := range []string{"p1", "p2", "p3"} {
			want = append(want, p.reading(patient, hour))
		}
		p.advance(time.Hour)
	}
	if len(r.accepted) != 0 || p.webhook(hook).FailingSince().IsZero() {
		t.Fatalf("%d accepted", len(r.accepted))
	}
	r.setAnswer(nil)
	p.reading("p4", 1)
	p.advance(time.Second)
	p.advance(time.Second)
	got := slices.Sorted(slices.Values(ids(r.accepted, "")))
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(want, "p4-1"))), got); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p1", "p2", "p3"} {
		var ordered []string
		for hour := range 24 {
			ordered = append(ordered, fmt.Sprintf("%s-%d", patient, hour))
		}
		if diff := cmp.Diff(ordered, ids(r.accepted, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if !p.webhook(hook).FailingSince().IsZero() || p.count(hook, "pending") != 0 || len(p.notices()) != 0 {
		t.Errorf("%d are pending, notices %v", p.count(hook, "pending"), p.notices())
	}
}

// After five days without success a webhook is disabled. Enabled again, it resumes with the dead letters of the outage and everything that happened
// since.
func TestDisabledAfterFiveDays(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(500))
	hook := p.hook(r, "observation.created")
	var want []string
	for day := range 6 {
		want = append(want, p.reading("p1", day), p.reading("p2", day))
		p.advanceInSteps(24*time.Hour, 30*time.Minute)
	}
	w := p.webhook(hook)
	if w.Active() || w.DisabledReason() != collections.WebhookFailing {
		t.Fatalf("after six days: active %v, %q", w.Active(), w.DisabledReason())
	}
	if p.count(hook, "failed") == 0 {
		t.Fatal("there is no dead letter, so the test proves too little")
	}
	if notices := p.notices(); len(notices) != 2 || !strings.Contains(notices[1], "switched off") {
		t.Errorf("notices to administrators: %q", notices)
	}
	n := len(r.all)
	for day := 6; day < 16; day++ {
		want = append(want, p.reading("p1", day), p.reading("p2", day))
		p.advanceInSteps(24*time.Hour, 6*time.Hour)
	}
	if len(r.all) != n {
		t.Errorf("%d requests to a disabled webhook", len(r.all)-n)
	}
	r.setAnswer(nil)
	p.change(hook, `{"active": true}`)
	p.runOnce()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(ids(r.accepted, "")))); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p1", "p2"} {
		var ordered []string
		for day := range 16 {
			ordered = append(ordered, fmt.Sprintf("%s-%d", patient, day))
		}
		if diff := cmp.Diff(ordered, ids(r.accepted, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if w := p.webhook(hook); !w.Active() || w.DisabledReason() != "" || !w.FailingSince().IsZero() {
		t.Errorf("enabled: %v %q %v", w.Active(), w.DisabledReason(), w.FailingSince())
	}
}

// A receiver that answers 410 is disabled at once.
func TestStatusGoneDisables(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(410))
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.runOnce()
	if w := p.webhook(hook); w.Active() || w.DisabledReason() != collections.WebhookGone || len(r.all) != 1 {
		t.Errorf("active %v, %q, after %d requests", w.Active(), w.DisabledReason(), len(r.all))
	}
	if notices := p.notices(); len(notices) != 1 || !strings.Contains(notices[0], "gone") {
		t.Errorf("notices to administrators: %q", notices)
	}
	p.advanceInSteps(10*24*time.Hour, 12*time.Hour)
	if len(r.all) != 1 {
		t.Errorf("%d requests", len(r.all))
	}
	r.setAnswer(nil)
	p.change(hook, `{"active": true}`)
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-1", "p1-2"}, ids(r.accepted, "")); diff != "" {
		t.Error(diff)
	}
}

// A receiver's Retry-After is respected within bounds.
func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{429, "60", time.Minute},
		{503, "3600", time.Hour},
		{503, start.Add(2 * time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 2 * time.Hour},
		{503, "999999999999", 24 * time.Hour},
		{503, "18446744073709551615", 24 * time.Hour},
		{429, "0", 5 * time.Second},
		{429, "-7", 5 * time.Second},
		{429, "soon", 5 * time.Second},
		{503, start.Add(-time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"), 5 * time.Second},
		{500, "3600", 5 * time.Second},
	} {
		p := newPractice(t)
		r := p.receiver(nil)
		p.hook(r, "observation.created")
		var requests atomic.Int64
		r.before = headerThen(&requests, tc.status, tc.header)
		p.reading("p1", 1)
		p.runOnce()
		p.reading("p2", 1) // other patients wait during the pause too
		if tc.want > 5*time.Second {
			p.advance(tc.want - time.Second)
			if requests.Load() != 1 {
				t.Errorf("%d, %s: %d requests during the pause", tc.status, tc.header, requests.Load())
			}
			p.advance(time.Second)
		} else {
			p.advance(tc.want)
		}
		if len(r.accepted) != 2 {
			t.Errorf("%d, %s: %d accepted after %s", tc.status, tc.header, len(r.accepted), tc.want)
		}
	}
}

// A payload that Vigil cannot render is retried and does not count against the receiver: the webhook stays enabled.
func TestUnreadablePayloadIsRetried(t *testing.T) {
	p := newPractice(t)
	p.views["observation p1-1"] = make(chan int) // cannot be encoded
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created", `"include_values": true`)
	p.reading("p1", 1)
	p.reading("p2", 1)
	p.advanceInSteps(6*24*time.Hour, time.Hour)
	if d := p.log(hook)[0]; d.Error != "unreadable" || d.Attempts != 10 || d.Code != 0 {
		t.Errorf("%+v", d)
	}
	if w := p.webhook(hook); !w.Active() || !w.FailingSince().IsZero() || len(r.accepted) != 1 {
		t.Errorf("active %v, failing since %v, %d accepted", w.Active(), w.FailingSince(), len(r.accepted))
	}
}

// Dead letters of an outage are sent once the webhook is enabled again, even if a test has succeeded before.
func TestDeadLettersAreSentAfterEnable(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(500))
	hook := p.hook(r, "observation.created")
	for n := range 3 {
		p.reading("p1", n)
	}
	p.advanceInSteps(6*24*time.Hour, time.Hour)
	if p.count(hook, "failed") != 1 || p.webhook(hook).Active() {
		t.Fatalf("%d dead letters, active %v", p.count(hook, "failed"), p.webhook(hook).Active())
	}
	r.setAnswer(nil)
	if d, err := p.engine.Test(t.Context(), p.app, hook, admin, p.clock()); err != nil || d.Status != "delivered" {
		t.Fatalf("%+v, %v", d, err)
	}
	p.runOnce()
	if len(r.accepted) != 1 {
		t.Errorf("%d accepted by a disabled webhook", len(r.accepted))
	}
	p.change(hook, `{"active": true}`)
	p.runOnce()
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2"}, ids(r.accepted, "p1")); diff != "" {
		t.Error(diff)
	}
}
