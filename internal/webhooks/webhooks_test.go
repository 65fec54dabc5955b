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

// What is told of is what was asked for, from then on, once, and it names things only.
func TestWhatIsTold(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	p.reading("p1", 1)
	p.views["observation p1-2"] = map[string]any{"weight_kg": 81}
	hook := p.hook(r, "observation.created alert.raised")
	p.reading("p1", 2)
	p.run(`INSERT INTO alerts (id, patient, status, level, type) VALUES ('000000000000012', 'p1', 'active', 'warning', 'pulse')`,
		`UPDATE alerts SET status = 'resolved'`, `UPDATE observations SET status = 'entered_in_error'`)
	p.round()
	p.round()
	want := []string{
		`{"type":"observation.created","timestamp":"*","data":{"type":"observation","id":"p1-2","patient_id":"p1"}}`,
		`{"type":"alert.raised","timestamp":"*","data":{"type":"alert","id":12,"patient_id":"p1"}}`,
	}
	for i, g := range r.taken {
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
		if d.Status != collections.WebhookDelivered || d.ID != r.taken[i].ID || d.Code != 200 || d.Attempts != 1 || d.Delivered == "" || d.Error != "" {
			t.Errorf("%+v", d)
		}
	}
}

// Values are sent only where they were asked for, as the API shows them when they are sent; what is not there any more is null.
func TestValues(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(nil)
	p.hook(r, "observation.created", `"include_values": true`)
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.views["observation p1-1"] = map[string]any{"weight_kg": 81.5}
	p.round()
	if want := []string{
		`"data":{"type":"observation","id":"p1-1","patient_id":"p1","object":{"weight_kg":81.5}}}`, `"patient_id":"p1","object":null}}`,
	}; len(r.taken) != 2 || !strings.HasSuffix(r.taken[0].Raw, want[0]) || !strings.HasSuffix(r.taken[1].Raw, want[1]) {
		t.Errorf("%+v", r.taken)
	}
	var traced []string
	if err := p.app.DB().NewQuery(`SELECT patient FROM audit_log WHERE event = 'webhook.send'`).Column(&traced); err != nil || len(traced) != 2 || traced[0] != "p1" {
		t.Errorf("that values left the house stands in the trail as %v, %v", traced, err)
	}
}

// A receiver that knows only the old secret understands what is sent for a day after a rotation; one that knows only the new one at once.
func TestRotation(t *testing.T) {
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
		t.Error("a secret prints")
	}
	for i, secret := range []string{old, rotated.Secret} {
		r.secrets = []string{secret}
		p.reading("p1", i)
		p.round()
	}
	p.after(24 * time.Hour)
	p.reading("p1", 2)
	p.round()
	if len(r.taken) != 3 {
		t.Errorf("%d requests", len(r.taken))
	}
	if diff := cmp.Diff([]int{2, 2, 1}, r.signatures); diff != "" {
		t.Error(diff)
	}
}

// A patient's events come one after the other; one that is not taken holds up this patient at this receiver, and nobody else.
func TestOrder(t *testing.T) {
	p := newPractice(t)
	stuck := func(g got) int {
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
	p.round()
	if diff := cmp.Diff([]string{"p1-0"}, ids(r.taken, "p1")); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p2", "p3"} {
		if diff := cmp.Diff([]string{patient + "-0", patient + "-1", patient + "-2", patient + "-3"}, ids(r.taken, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if len(other.taken) != 12 {
		t.Errorf("the other receiver has %d", len(other.taken))
	}
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2", "p1-3"}, ids(other.taken, "p1")); diff != "" {
		t.Error(diff)
	}
	if pending := p.count(hook, "pending"); pending != 3 {
		t.Errorf("%d wait", pending)
	}
	p.after(4 * time.Second)
	if n := len(r.all); n != 10 {
		t.Errorf("%d requests before the retry is due", n)
	}
	r.say(nil)
	p.after(time.Second)
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2", "p1-3"}, ids(r.taken, "p1")); diff != "" {
		t.Error(diff)
	}
	ids := map[string]int{}
	for _, g := range r.all {
		ids[g.ID]++
	}
	if len(ids) != 12 {
		t.Errorf("%d ids for 12 events: a retry has another", len(ids))
	}
}

// The waits between attempts are the schedule's; then it is given up, told, and the patient's next events go on. It can be sent again by hand.
func TestGivenUp(t *testing.T) {
	p := newPractice(t)
	poison := func(g got) int {
		if g.Data["id"] == "p1-1" {
			return 422
		}
		return 200
	}
	r := p.receiver(poison)
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.round()
	waits := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, wait := range waits {
		if d := p.log(hook)[0]; d.Attempts != i+1 || d.Status != "pending" || d.DueAt != collections.Instant(p.clock().Add(wait)) || d.Code != 422 {
			t.Fatalf("after %d waits: %+v", i, d)
		}
		p.after(wait)
	}
	if d := p.log(hook)[0]; d.Attempts != 10 || d.Status != "failed" || d.DueAt != "" || d.Error != "status" {
		t.Errorf("%+v", d)
	}
	p.after(time.Second)
	if diff := cmp.Diff([]string{"p1-2"}, ids(r.taken, "")); diff != "" {
		t.Error(diff)
	}
	if told := p.told(); len(told) != 1 || strings.Contains(told[0], r.URL) {
		t.Errorf("administrators were told %q", told)
	}
	p.goOn(48*time.Hour, time.Hour)
	if n := len(r.all); n != 12 { // once more when the receiver had taken something again
		t.Errorf("%d requests", n)
	}
	r.say(nil)
	again, err := p.engine.Retry(p.app, p.log(hook)[0].ID, admin, p.clock())
	if err != nil || again.Status != "pending" || again.Attempts != 11 {
		t.Errorf("%+v, %v", again, err)
	}
	p.round()
	if diff := cmp.Diff([]string{"p1-2", "p1-1"}, ids(r.taken, "")); diff != "" {
		t.Error(diff)
	}
	if d := p.log(hook)[0]; d.Status != "delivered" || d.Attempts != 12 {
		t.Errorf("%+v", d)
	}
	if _, err := p.engine.Retry(p.app, p.log(hook)[1].ID, admin, p.clock()); err != nil {
		t.Errorf("what was taken cannot be sent again: %v", err)
	}
	p.round()
	if first, last := r.taken[0], r.taken[len(r.taken)-1]; first.ID != last.ID || len(r.taken) != 3 {
		t.Errorf("sent again under another id: %v, %v", first, last)
	}
	if slices.Index(p.outcomes, "failed") < 0 {
		t.Errorf("counted: %v", p.outcomes)
	}
}

// A receiver that is down for a day gets everything afterwards, in order, soon after it is back.
func TestDownForADay(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(503))
	hook := p.hook(r, "observation.created")
	var want []string
	for hour := range 24 {
		for _, patient := range []string{"p1", "p2", "p3"} {
			want = append(want, p.reading(patient, hour))
		}
		p.after(time.Hour)
	}
	if len(r.taken) != 0 || p.webhook(hook).FailingSince().IsZero() {
		t.Fatalf("%d taken", len(r.taken))
	}
	r.say(nil)
	p.reading("p4", 1)
	p.after(time.Second)
	p.after(time.Second)
	got := slices.Sorted(slices.Values(ids(r.taken, "")))
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(want, "p4-1"))), got); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p1", "p2", "p3"} {
		var ordered []string
		for hour := range 24 {
			ordered = append(ordered, fmt.Sprintf("%s-%d", patient, hour))
		}
		if diff := cmp.Diff(ordered, ids(r.taken, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if !p.webhook(hook).FailingSince().IsZero() || p.count(hook, "pending") != 0 || len(p.told()) != 0 {
		t.Errorf("%d wait, told %v", p.count(hook, "pending"), p.told())
	}
}

// After five days without success it is switched off; switched on again it goes on where it stopped, with what was given up meanwhile and what
// happened since.
func TestFiveDays(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(500))
	hook := p.hook(r, "observation.created")
	var want []string
	for day := range 6 {
		want = append(want, p.reading("p1", day), p.reading("p2", day))
		p.goOn(24*time.Hour, 30*time.Minute)
	}
	w := p.webhook(hook)
	if w.Active() || w.DisabledReason() != collections.WebhookFailing {
		t.Fatalf("after six days: active %v, %q", w.Active(), w.DisabledReason())
	}
	if p.count(hook, "failed") == 0 {
		t.Fatal("nothing was given up: the test shows too little")
	}
	if told := p.told(); len(told) != 2 || !strings.Contains(told[1], "switched off") {
		t.Errorf("administrators were told %q", told)
	}
	n := len(r.all)
	for day := 6; day < 16; day++ {
		want = append(want, p.reading("p1", day), p.reading("p2", day))
		p.goOn(24*time.Hour, 6*time.Hour)
	}
	if len(r.all) != n {
		t.Errorf("%d requests to one that is switched off", len(r.all)-n)
	}
	r.say(nil)
	p.change(hook, `{"active": true}`)
	p.round()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(ids(r.taken, "")))); diff != "" {
		t.Error(diff)
	}
	for _, patient := range []string{"p1", "p2"} {
		var ordered []string
		for day := range 16 {
			ordered = append(ordered, fmt.Sprintf("%s-%d", patient, day))
		}
		if diff := cmp.Diff(ordered, ids(r.taken, patient)); diff != "" {
			t.Error(diff)
		}
	}
	if w := p.webhook(hook); !w.Active() || w.DisabledReason() != "" || !w.FailingSince().IsZero() {
		t.Errorf("switched on: %v %q %v", w.Active(), w.DisabledReason(), w.FailingSince())
	}
}

// A receiver that says it is gone is switched off at once.
func TestGone(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(410))
	hook := p.hook(r, "observation.created")
	p.reading("p1", 1)
	p.reading("p1", 2)
	p.round()
	if w := p.webhook(hook); w.Active() || w.DisabledReason() != collections.WebhookGone || len(r.all) != 1 {
		t.Errorf("active %v, %q, after %d requests", w.Active(), w.DisabledReason(), len(r.all))
	}
	if told := p.told(); len(told) != 1 || !strings.Contains(told[0], "gone") {
		t.Errorf("administrators were told %q", told)
	}
	p.goOn(10*24*time.Hour, 12*time.Hour)
	if len(r.all) != 1 {
		t.Errorf("%d requests", len(r.all))
	}
	r.say(nil)
	p.change(hook, `{"active": true}`)
	p.round()
	if diff := cmp.Diff([]string{"p1-1", "p1-2"}, ids(r.taken, "")); diff != "" {
		t.Error(diff)
	}
}

// A receiver's wish to be left alone is respected within bounds.
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
		var asked atomic.Int64
		r.before = headerThen(&asked, tc.status, tc.header)
		p.reading("p1", 1)
		p.round()
		p.reading("p2", 1) // nobody is let past while it wants to be left alone
		if tc.want > 5*time.Second {
			p.after(tc.want - time.Second)
			if asked.Load() != 1 {
				t.Errorf("%d, %s: asked %d times before", tc.status, tc.header, asked.Load())
			}
			p.after(time.Second)
		} else {
			p.after(tc.want)
		}
		if len(r.taken) != 2 {
			t.Errorf("%d, %s: %d taken after %s", tc.status, tc.header, len(r.taken), tc.want)
		}
	}
}

// What the service itself cannot read is no fault of the receiver: it is tried again, and the webhook stays in use.
func TestUnreadable(t *testing.T) {
	p := newPractice(t)
	p.views["observation p1-1"] = make(chan int) // what cannot be encoded
	r := p.receiver(nil)
	hook := p.hook(r, "observation.created", `"include_values": true`)
	p.reading("p1", 1)
	p.reading("p2", 1)
	p.goOn(6*24*time.Hour, time.Hour)
	if d := p.log(hook)[0]; d.Error != "unreadable" || d.Attempts != 10 || d.Code != 0 {
		t.Errorf("%+v", d)
	}
	if w := p.webhook(hook); !w.Active() || !w.FailingSince().IsZero() || len(r.taken) != 1 {
		t.Errorf("active %v, failing since %v, %d taken", w.Active(), w.FailingSince(), len(r.taken))
	}
}

// What was given up while a receiver took nothing follows when the webhook is switched on again, also after a test has shown that it is back.
func TestSwitchedOnAfterATest(t *testing.T) {
	p := newPractice(t)
	r := p.receiver(always(500))
	hook := p.hook(r, "observation.created")
	for n := range 3 {
		p.reading("p1", n)
	}
	p.goOn(6*24*time.Hour, time.Hour)
	if p.count(hook, "failed") != 1 || p.webhook(hook).Active() {
		t.Fatalf("%d given up, active %v", p.count(hook, "failed"), p.webhook(hook).Active())
	}
	r.say(nil)
	if d, err := p.engine.Test(t.Context(), p.app, hook, admin, p.clock()); err != nil || d.Status != "delivered" {
		t.Fatalf("%+v, %v", d, err)
	}
	p.round()
	if len(r.taken) != 1 {
		t.Errorf("%d taken by one that is switched off", len(r.taken))
	}
	p.change(hook, `{"active": true}`)
	p.round()
	if diff := cmp.Diff([]string{"p1-0", "p1-1", "p1-2"}, ids(r.taken, "p1")); diff != "" {
		t.Error(diff)
	}
}
