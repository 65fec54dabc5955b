package emr_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

func TestQueueNumbers(t *testing.T) {
	app := newApp(t)
	var ids []string
	for _, at := range []time.Time{now, now, time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)} {
		id, _ := queueDelivery(t, app, patient, at)
		ids = append(ids, id)
	}
	if diff := cmp.Diff([]string{"TXN-2026-000001", "TXN-2026-000002", "TXN-2026-000003", "TXN-2027-000001"}, ids); diff != "" {
		t.Error(diff)
	}
	if _, err := app.DB().NewQuery("UPDATE sequences SET value = 999999 WHERE name = 'transmissions-2026'").Execute(); err != nil {
		t.Fatal(err)
	}
	if id, _ := queueDelivery(t, app, patient, now); id != "TXN-2026-1000000" {
		t.Errorf("the millionth is %s", id)
	}
	_, err := emr.Queue(app, emr.Draft{ObservationID: "o", PatientID: patient}, now)
	if err == nil {
		_, err = emr.Queue(app, emr.Draft{ObservationID: "o", PatientID: patient}, now)
	}
	if err == nil {
		t.Error("an observation has two transmissions")
	}
}

func claim(t testing.TB, app core.App, limit int, at time.Time) []emr.Leased {
	t.Helper()
	claimed, err := emr.Lease(app, limit, at, at)
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

func TestClaimDueDeliveries(t *testing.T) {
	app := newApp(t)
	at := func(minutes int) string {
		return collections.FormatInstant(now.Add(time.Duration(minutes) * time.Minute))
	}
	rows := []dbx.Params{
		{
			"id": "retry due", "status": "failed", "next_retry_at": at(0), "created_at": at(-30), "attempt_count": 2, "ambiguous": true,
			"first_attempted_at": at(-29), "last_attempted_at": at(-10),
		},
		{"id": "young", "status": "pending", "created_at": at(-1)},
		{"id": "old", "status": "pending", "created_at": at(-60)},
		{"id": "retry to come", "status": "failed", "next_retry_at": at(1), "created_at": at(-90)},
		{"id": "given up", "status": "failed", "created_at": at(-90)},
		{"id": "under way", "status": "processing", "created_at": at(-90), "claimed_at": at(-1)},
		{"id": "delivered", "status": "transmitted", "created_at": at(-90)},
		{"id": "tried this moment", "status": "failed", "next_retry_at": at(0), "created_at": at(-90), "last_attempted_at": at(0)},
	}
	for _, row := range rows {
		row["observation"], row["patient"] = "observation "+row["id"].(string), patient
		insert(t, app, collections.Transmissions, row)
	}
	insert(t, app, collections.Observations, dbx.Params{"id": "observation old", "patient": patient, "fhir_status": "pending"})
	if due, err := collections.DueTransmissions(app, now); err != nil || due != 4 {
		t.Errorf("%d due (%v)", due, err)
	}
	first, rest := claim(t, app, 2, now), claim(t, app, 10, now)
	if diff := cmp.Diff([]string{"old", "retry due"}, ids(first)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"young"}, ids(rest)); diff != "" {
		t.Error(diff)
	}
	i := slices.IndexFunc(first, func(c emr.Leased) bool { return c.ID == "retry due" })
	want := emr.Leased{
		ID: "retry due", ObservationID: "observation retry due", PatientID: patient, AttemptCount: 2,
		LeasedAt: at(0), Ambiguous: true, CreatedAt: at(-30),
	}
	if diff := cmp.Diff(want, first[i]); diff != "" {
		t.Error(diff)
	}
	check(t, app, collections.Observations, "observation old", map[string]any{"fhir_status": "processing"})
	pending, processing, awaiting, err := emr.Backlog(app)
	if pending != 0 || processing != 4 || awaiting != 2 || err != nil {
		t.Errorf("backlog %d, %d, %d (%v)", pending, processing, awaiting, err)
	}
}

func ids(claimed []emr.Leased) (ids []string) {
	for _, c := range claimed {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

// Among concurrent claims, each delivery has one claimant.
func TestClaimIsExclusive(t *testing.T) {
	app := newApp(t)
	const records = 60
	for range records {
		queueDelivery(t, app, patient, now)
	}
	var group sync.WaitGroup
	var lock sync.Mutex
	claims := map[string]int{}
	for range 8 {
		group.Go(func() {
			for {
				claimed, err := emr.Lease(app, 3, now, now)
				if err != nil {
					t.Error(err)
				}
				if len(claimed) == 0 {
					return
				}
				lock.Lock()
				for _, c := range claimed {
					claims[c.ID]++
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	for id, n := range claims {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(claims) != records {
		t.Errorf("%d of %d claimed", len(claims), records)
	}
}

func TestSucceed(t *testing.T) {
	app := newApp(t)
	id, observation := queueDelivery(t, app, patient, now)
	started, ended := now.Add(time.Second), now.Add(2*time.Second)
	c := claim(t, app, 1, now)[0]
	if _, err := emr.Succeed(app, c, emr.EMRCopy{EMRID: "emr-7", SentHash: "abc"}, started, ended); err != nil {
		t.Fatal(err)
	}
	check(t, app, collections.Transmissions, id, map[string]any{
		"status": "transmitted", "emr_resource_id": "emr-7", "sent_hash": "abc", "claimed_at": "",
		"attempt_count": 0.0, "first_attempted_at": collections.FormatInstant(started), "last_attempted_at": collections.FormatInstant(started),
		"updated_at": collections.FormatInstant(ended), "next_retry_at": "",
	})
	check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "transmitted", "emr_resource_id": "emr-7"})
	if _, err := emr.Succeed(app, c, emr.EMRCopy{EMRID: "emr-8"}, started, ended); !errors.Is(err, emr.ErrLeaseExpired) {
		t.Errorf("succeeded twice: %v", err)
	}
}

// The first attempt is not counted; five retries follow, and the sixth failure makes a dead letter.
func TestFailUsesTheSchedule(t *testing.T) {
	app := newApp(t)
	id, observation := queueDelivery(t, app, patient, now)
	at := now
	for send := 1; send <= 6; send++ {
		claimed := claim(t, app, 1, at)
		if len(claimed) != 1 {
			t.Fatalf("send %d: not due", send)
		}
		started := at.Add(-time.Millisecond)
		next, err := emr.Fail(app, claimed[0], emr.Failure{
			Code: "emr_unavailable", Message: "EMR unavailable (503)",
			Diagnostics: "the EMR's own words", Ambiguous: send == 2,
		}, schedule, 0, started, at)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"status": "failed", "attempt_count": float64(min(send, 5)), "error_code": "emr_unavailable", "error_message": "EMR unavailable (503)",
			"first_attempted_at": collections.FormatInstant(now.Add(-time.Millisecond)), "last_attempted_at": collections.FormatInstant(started),
			"diagnostics": "the EMR's own words", "ambiguous": send >= 2, "next_retry_at": "",
		}
		if send <= 5 {
			if !next.Equal(at.Add(schedule[send-1])) {
				t.Errorf("send %d: again at %s", send, next)
			}
			want["next_retry_at"] = collections.FormatInstant(next)
			at = next
		} else if !next.IsZero() {
			t.Errorf("a seventh send at %s", next)
		}
		check(t, app, collections.Transmissions, id, want)
		check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "failed"})
	}
	if claimed := claim(t, app, 1, now.AddDate(1, 0, 0)); len(claimed) != 0 {
		t.Error("a dead letter is due")
	}
	var stored string
	if err := app.DB().NewQuery("SELECT diagnostics FROM transmissions").Row(&stored); err != nil || strings.Contains(stored, "words") {
		t.Errorf("the diagnostics are stored as %q (%v)", stored, err)
	}
	// A person sends it again; if that fails too it stays a dead letter.
	if _, err := app.DB().NewQuery("UPDATE transmissions SET status = 'pending'").Execute(); err != nil {
		t.Fatal(err)
	}
	c := claim(t, app, 1, at.Add(time.Hour))[0]
	if next, err := emr.Fail(app, c, emr.Failure{Code: "timeout"}, schedule, 0, at, at); err != nil || !next.IsZero() {
		t.Errorf("after a send by hand: %s (%v)", next, err)
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "attempt_count": 5.0, "next_retry_at": ""})
}

// The EMR's Retry-After prolongs a wait, never shortens it, and adds no attempt.
func TestFailHonorsRetryAfter(t *testing.T) {
	app := newApp(t)
	queueDelivery(t, app, patient, now)
	c := claim(t, app, 1, now)[0]
	for _, test := range []struct{ retryAfter, wait time.Duration }{{0, 5 * time.Minute}, {time.Minute, 5 * time.Minute}, {time.Hour, time.Hour}} {
		var next time.Time
		err := app.RunInTransaction(func(tx core.App) (err error) {
			next, err = emr.Fail(tx, c, emr.Failure{Code: "rate_limited", RetryAfter: test.retryAfter}, schedule, 0, now, now)
			return errors.Join(err, errUndo)
		})
		if !errors.Is(err, errUndo) || !next.Equal(now.Add(test.wait)) {
			t.Errorf("Retry-After %s: %s (%v)", test.retryAfter, next.Sub(now), err)
		}
	}
	c.AttemptCount = 5
	next, err := emr.Fail(app, c, emr.Failure{Code: "rate_limited", RetryAfter: time.Hour}, schedule, 0, now, now)
	if err != nil || !next.IsZero() {
		t.Errorf("dead letter, but retried at %s (%v)", next, err)
	}
}

var errUndo = errors.New("undo")

// Administrators are notified of dead letters once a day for each reason.
func TestDeadLetterNotice(t *testing.T) {
	app := newApp(t)
	fail := func(code string, at time.Time) {
		queueDelivery(t, app, patient, at)
		c := claim(t, app, 1, at.Add(time.Second))[0]
		if _, err := emr.Fail(app, c, emr.Failure{Code: code, Message: "EMR unavailable (503)"}, nil, 0, at, at); err != nil {
			t.Fatal(err)
		}
	}
	fail("emr_unavailable", now)
	fail("emr_unavailable", now.Add(time.Hour))
	fail("timeout", now.Add(2*time.Hour))
	fail("emr_unavailable", now.Add(24*time.Hour))
	var announced []string
	if err := app.DB().NewQuery("SELECT kind || ' ' || key FROM announcements ORDER BY rowid").Column(&announced); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delivery_given_up delivery given up/emr_unavailable/2026-01-15", "delivery_given_up delivery given up/timeout/2026-01-15",
		"delivery_given_up delivery given up/emr_unavailable/2026-01-16",
	}
	if diff := cmp.Diff(want, announced); diff != "" {
		t.Error(diff)
	}
}

func TestFigures(t *testing.T) {
	app := newApp(t)
	if f, err := emr.CountDeliveries(app, now); err != nil || f != (emr.DeliveryCounts{}) || f.SuccessRate() != 100 {
		t.Errorf("%+v (%v)", f, err)
	}
	for i, row := range []dbx.Params{
		{"status": "transmitted", "last_attempted_at": collections.FormatInstant(now.Add(-time.Microsecond))},
		{"status": "transmitted", "last_attempted_at": collections.FormatInstant(now)},
		{"status": "transmitted", "last_attempted_at": collections.FormatInstant(now.Add(time.Hour))},
		{"status": "failed", "last_attempted_at": collections.FormatInstant(now.Add(2 * time.Hour)), "next_retry_at": collections.FormatInstant(now.Add(3 * time.Hour))},
		{"status": "failed", "last_attempted_at": collections.FormatInstant(now.Add(-time.Hour))},
		{"status": "pending"},
		{"status": "processing"},
	} {
		row["id"], row["observation"], row["patient"] = fmt.Sprint("t", i), fmt.Sprint("o", i), patient
		insert(t, app, collections.Transmissions, row)
	}
	f, err := emr.CountDeliveries(app, now)
	want := emr.DeliveryCounts{Pending: 1, Processing: 1, AwaitingRetry: 1, DeadLetters: 1, Transmitted: 2, Failed: 1, LastTransmitted: now.Add(time.Hour)}
	if diff := cmp.Diff(want, f); diff != "" || err != nil || f.SuccessRate() != 66.7 {
		t.Errorf("%v %s (%v)", f.SuccessRate(), diff, err)
	}
}

func TestRecover(t *testing.T) {
	app := newApp(t)
	id, observation := queueDelivery(t, app, patient, now)
	waiting, _ := queueDelivery(t, app, patient, now.Add(time.Minute))
	lost := claim(t, app, 1, now)[0]
	if n, err := emr.RequeueInterrupted(app, []string{lost.ID}, now); err != nil || n != 0 {
		t.Errorf("%d own ones recovered (%v)", n, err)
	}
	if n, err := emr.RequeueInterrupted(app, []string{"TXN-2026-000099"}, now.Add(time.Second)); err != nil || n != 1 {
		t.Fatalf("%d recovered (%v)", n, err)
	}
	check(t, app, collections.Transmissions, id, map[string]any{"status": "pending", "ambiguous": true, "attempt_count": 0.0, "claimed_at": ""})
	check(t, app, collections.Transmissions, waiting, map[string]any{"status": "pending", "ambiguous": false})
	check(t, app, collections.Observations, observation, map[string]any{"fhir_status": "pending"})
	if _, err := emr.Succeed(app, lost, emr.EMRCopy{}, now, now); !errors.Is(err, emr.ErrLeaseExpired) {
		t.Errorf("the gone worker stored a result: %v", err)
	}
	if n, err := emr.RequeueInterrupted(app, nil, now); err != nil || n != 0 {
		t.Errorf("%d recovered again (%v)", n, err)
	}
}

func TestStuck(t *testing.T) {
	app := newApp(t)
	id, _ := queueDelivery(t, app, patient, now)
	claimed := claim(t, app, 1, now)[0]
	for minutes, want := range map[int]int{0: 0, 9: 0, 10: 1, 60: 1} {
		stuck, err := emr.Stuck(app, now.Add(time.Duration(minutes)*time.Minute))
		if err != nil || len(stuck) != want {
			t.Errorf("after %d minutes: %d stuck (%v)", minutes, len(stuck), err)
		}
		if len(stuck) == 1 && (stuck[0].ID != id || stuck[0].LeasedAt != claimed.LeasedAt || !stuck[0].Ambiguous) {
			t.Errorf("%+v", stuck[0])
		}
	}
}

func TestList(t *testing.T) {
	app := newApp(t)
	first, _ := queueDelivery(t, app, patient, now)
	second, _ := queueDelivery(t, app, unlinkedPatient, now.Add(time.Minute))
	third, _ := queueDelivery(t, app, patient, now.Add(2*time.Minute))
	c := claim(t, app, 1, now)[0]
	later := now.Add(time.Hour)
	if _, err := emr.Succeed(app, c, emr.EMRCopy{EMRID: "x"}, later, later); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		filter collections.TransmissionFilter
		want   []string
	}{
		{"newest first", collections.TransmissionFilter{}, []string{third, second, first}},
		{"status", collections.TransmissionFilter{Status: "transmitted"}, []string{first}},
		{"patient", collections.TransmissionFilter{PatientID: patient}, []string{third, first}},
		{"by last attempt, else creation", collections.TransmissionFilter{From: now.Add(2 * time.Minute)}, []string{third, first}},
		{"both ends", collections.TransmissionFilter{From: now.Add(time.Minute), To: now.Add(2 * time.Minute)}, []string{third, second}},
	} {
		page, total, err := collections.PageOfTransmissions(app, test.filter, 0, 10)
		var got []string
		for _, record := range page {
			got = append(got, record.Id)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || total != len(got) || err != nil {
			t.Errorf("%s: %d in all (%v) %s", test.name, total, err, diff)
		}
	}
}

// A claim uses two small indexes; it neither scans the table nor sorts the backlog.
func TestClaimUsesItsIndexes(t *testing.T) {
	app := newApp(t)
	for query, index := range map[string]string{
		"status = 'pending' AND waits_for = '' AND last_attempted_at < 'x' ORDER BY created_at, id LIMIT 5": "idx_transmissions_waiting",
		"status = 'failed' AND next_retry_at != '' AND next_retry_at <= 'x' ORDER BY next_retry_at LIMIT 5": "idx_transmissions_retrying",
		"status = 'processing' AND claimed_at <= 'x' ORDER BY claimed_at":                                   "idx_transmissions_processing",
		"patient = 'x' AND waits_for != '' AND waits_for = 'turn'":                                          "idx_transmissions_waits",
	} {
		var steps []struct {
			Detail string `db:"detail"`
		}
		if err := app.DB().NewQuery("EXPLAIN QUERY PLAN SELECT id, created_at FROM transmissions WHERE " + query).All(&steps); err != nil {
			t.Fatal(err)
		}
		if plan := fmt.Sprint(steps); len(steps) != 1 || !strings.Contains(plan, index) {
			t.Errorf("%s: %s", query, plan)
		}
	}
}
