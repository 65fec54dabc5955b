package routes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

const batchPath = "/ingestion/batch/"

func encoded(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// lines returns the results of a batch's readings.
func (r reply) lines() (lines []object) {
	r.t.Helper()
	for i, line := range r.want(200).object()["results"].([]any) {
		lines = append(lines, line.(object))
		if lines[i]["index"] != float64(i) {
			r.t.Errorf("line %d has the index %v", i, lines[i]["index"])
		}
	}
	return lines
}

func bp(patient string, at time.Time, systolic, diastolic int) object {
	return object{"type": "blood_pressure", "patient_id": patient, "systolic": systolic, "diastolic": diastolic, "measured_at": at.UTC().Format(time.RFC3339)}
}

func weighed(patient string, at time.Time, kg float64) object {
	return object{"type": "weight", "patient_id": patient, "weight_kg": kg, "measured_at": at.UTC().Format(time.RFC3339)}
}

// Each reading of a batch gets the result that its own endpoint would return, and an invalid one does not affect the
// others. Source: docs/decisions/observations.md, "Batches".
func TestStoryBatchOfReadings(t *testing.T) {
	c := newIngestingClinic(t)
	id, other := c.enroll(nil), c.enroll(nil)
	gone := c.enroll(nil)
	c.request(authz.Admin, "DELETE", "/patients/"+gone+"/", nil).want(204)
	archived := c.enroll(nil)
	c.request(authz.Admin, "POST", "/patients/"+archived+"/archive/", object{"reason": "moved"}).want(200)
	c.request(authz.Admin, "POST", "/devices/assign/", object{"device_id": "CUFF-1", "patient_id": other, "device_type": "blood_pressure"})
	now := c.now
	with := func(line object, changes object) object {
		line = maps.Clone(line)
		maps.Copy(line, changes)
		for name, value := range line {
			if value == "-" {
				delete(line, name)
			}
		}
		return line
	}
	good := bp(id, now, 120, 80)
	sent := []any{
		good,
		with(good, object{"systolic": "120"}),
		with(good, object{"systolic": "-"}),
		with(good, object{"systolic": 80, "diastolic": 90}),
		with(good, object{"systolic": 999}), // implausible
		with(good, object{"measured_at": "yesterday"}),
		with(good, object{"measured_at": now.Add(time.Hour).Format(time.RFC3339)}),
		with(good, object{"measured_at": "1900-01-01T00:00:00Z"}), // before birth
		with(good, object{"patient_id": "x"}),
		with(good, object{"patient_id": "-"}),
		with(good, object{"patient_id": collections.NewUUID()}),
		with(good, object{"patient_id": gone}),
		with(good, object{"patient_id": archived}),
		with(good, object{"device_id": ""}),
		with(good, object{"device_id": "CUFF-1", "measured_at": now.Add(time.Minute).Format(time.RFC3339)}),
		object{"type": "weight", "patient_id": id, "measured_at": now.Format(time.RFC3339)},
		object{"type": "weight", "patient_id": id, "weight_kg": 80, "weight_lbs": 176, "measured_at": now.Format(time.RFC3339)},
		object{"type": "blood_glucose", "patient_id": id, "glucose_mmol_l": 5.6, "measured_at": now.Format(time.RFC3339)},
		object{"type": "pulse_oximetry", "patient_id": id, "spo2": 97, "measured_at": now.Format(time.RFC3339)},
		object{"type": "body_temperature", "patient_id": id, "temperature_f": 98.6, "measured_at": now.Format(time.RFC3339)},
		weighed(id, now, 80.5),
		good, // duplicate
	}
	got := c.request(authz.Nurse, "POST", batchPath, object{"readings": sent})
	lines := got.lines()

	single := newIngestingClinic(t)
	single.copyPeople(t, c)
	counts := map[any]float64{}
	for i, line := range sent {
		body := line.(object)
		answer := single.request(authz.Nurse, "POST", "/ingestion/"+strings.ReplaceAll(body["type"].(string), "_", "-")+"/", body)
		want := map[int]string{200: "duplicate", 201: "accepted"}[answer.status]
		if want == "" {
			want = "rejected"
		}
		o := answer.object()
		if lines[i]["status"] != want || want == "rejected" && lines[i]["code"] != o["code"] || (lines[i]["id"] == nil) != (want == "rejected") {
			t.Errorf("%v became %v, by itself %d %s", line, lines[i], answer.status, answer.body)
		}
		if fields := o["field_errors"]; fields != nil && fmt.Sprint(fields) != fmt.Sprint(lines[i]["errors"]) {
			t.Errorf("%v is wrong in %v, by itself in %v", line, lines[i]["errors"], fields)
		}
		if want == "rejected" && len(lines[i]["errors"].(object)) == 0 {
			t.Errorf("%v does not name the error", lines[i])
		}
		counts[want]++
	}
	got.wantAt(object{"accepted": counts["accepted"], "duplicates": counts["duplicate"], "rejected": counts["rejected"]})
	if counts["accepted"] != 5 || counts["duplicate"] != 1 {
		t.Errorf("%v", counts)
	}
	if lines[0]["id"] != lines[len(lines)-1]["id"] {
		t.Error("the same twice is two")
	}
	for table, query := range map[string]string{
		"observations": "SELECT observation_type || origin || source || review_state || fhir_status FROM observations ORDER BY 1",
		"alerts":       "SELECT type || level || late || status || parameter FROM alerts ORDER BY 1",
		"kept":         "SELECT status || reason || source || implausible FROM gateway_events ORDER BY 1",
		"escalations":  "SELECT priority || status FROM escalations",
	} {
		if one, many := single.queryColumn(query), c.queryColumn(query); !slices.Equal(one, many) || table != "escalations" && len(one) == 0 {
			t.Errorf("%s: %v one by one, %v together", table, one, many)
		}
	}
}

// copyPeople copies the patients, devices and assignments of another clinic.
func (c *clinic) copyPeople(t *testing.T, from *clinic) {
	t.Helper()
	for _, table := range []string{collections.Patients, collections.TriageScores, collections.Devices, collections.DeviceAssignments} {
		var rows []dbx.NullStringMap
		if err := from.app.DB().Select().From(table).All(&rows); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			columns := dbx.Params{}
			for name, value := range row {
				if columns[name] = any(value.String); !value.Valid {
					columns[name] = nil
				}
			}
			c.insert(table, columns)
		}
	}
}

// A batch is evaluated in order of measurement, not in its own order: alerts and scores equal those of single
// requests in that order.
func TestBatchInAnyOrder(t *testing.T) {
	for seed := range uint64(3) {
		shuffle := rand.New(rand.NewPCG(seed, 1))
		together := newIngestingClinic(t)
		id := together.enroll(nil)
		end := together.now
		var sent []object
		for i := range 70 { // over three days, the newest now, and more than one commit takes
			at := end.Add(-time.Duration(69-i) * 60 * time.Minute)
			sent = append(sent, weighed(id, at, 80+float64(shuffle.IntN(40))/10), bp(id, at.Add(time.Second), 110+shuffle.IntN(90), 70+shuffle.IntN(30)))
		}
		for _, line := range sent {
			if at, _ := time.Parse(time.RFC3339, line["measured_at"].(string)); at.After(end) {
				line["measured_at"] = end.Format(time.RFC3339)
			}
		}
		shuffled := slices.Clone(sent)
		shuffle.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		together.request(authz.Nurse, "POST", batchPath, object{"readings": shuffled}).wantAt(object{"accepted": float64(len(sent)), "rejected": 0.0})
		inOrder := newIngestingClinic(t)
		inOrder.copyPeople(t, together)
		inOrder.request(authz.Nurse, "POST", batchPath, object{"readings": sent}).wantAt(object{"accepted": float64(len(sent))})
		for what, query := range map[string]string{
			"alerts":       "SELECT type || ' ' || level || ' ' || parameter || ' ' || late || ' ' || status || ' ' || measured_at FROM alerts ORDER BY 1",
			"escalations":  "SELECT priority || status || (SELECT COUNT(*) FROM alerts a WHERE a.escalation = e.id) FROM escalations e ORDER BY 1",
			"score":        "SELECT risk_score || ' ' || risk_level FROM triage_scores",
			"reading days": "SELECT day || observation_type || readings FROM reading_days ORDER BY 1",
		} {
			if one, other := inOrder.queryColumn(query), together.queryColumn(query); !slices.Equal(one, other) {
				t.Errorf("seed %d, %s:\n%v sorted\n%v shuffled", seed, what, one, other)
			}
		}
		if len(together.queryColumn("SELECT id FROM alerts")) == 0 {
			t.Error("nothing was judged")
		}
	}
}

// A late critical reading is resolved by later readings of the same batch at any position, unless those are refused.
func TestLateInABatch(t *testing.T) {
	for name, test := range map[string]struct {
		newer    func(id string, now time.Time) object
		statuses []string
	}{
		"a newer reading":            {func(id string, now time.Time) object { return bp(id, now, 120, 80) }, []string{"auto_resolved superseded"}},
		"a newer reading is refused": {func(string, time.Time) object { return bp(collections.NewUUID(), vigiltest.Clock, 120, 80) }, []string{"active "}},
	} {
		for _, first := range []bool{true, false} {
			c := newIngestingClinic(t)
			id := c.enroll(nil)
			sent := []object{bp(id, c.now.Add(-72*time.Hour), 210, 120), test.newer(id, c.now)}
			if first {
				slices.Reverse(sent)
			}
			c.request(authz.Nurse, "POST", batchPath, object{"readings": sent}).want(200)
			got := slices.Compact(c.queryColumn("SELECT status || ' ' || resolution_reason FROM alerts WHERE late AND level = 'critical' ORDER BY 1"))
			if !slices.Equal(got, test.statuses) {
				t.Errorf("%s: the late alerts are %v, want %v", name, got, test.statuses)
			}
		}
	}
}

func TestBatchBounds(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	list := func(n int) string {
		items := make([]string, n)
		for i := range items {
			items[i] = encoded(t, weighed(id, c.now.Add(-time.Duration(i)*time.Minute), 80))
		}
		return `{"readings":[` + strings.Join(items, ",") + `]}`
	}
	for body, field := range map[string]string{
		list(0): "readings", list(1001): "readings", `{}`: "readings", `{"readings":null}`: "readings", `{"readings":{}}`: "readings",
		`{"readings":[1],"readings":[1]}`: "readings", `{"Readings":[1]}`: "readings",
	} {
		c.request(authz.Nurse, "POST", batchPath, body).wantFields(field)
	}
	for _, body := range []string{``, `[]`, `{"readings":[}`, `{"readings":[1,]}`, `{"readings":[1]} x`, `{"readings":[{"a":]}`, `{"readings":[1]`, `null`} {
		c.request(authz.Nurse, "POST", batchPath, body).want(400, "parse_error")
	}
	c.request(authz.Nurse, "POST", batchPath, `{"readings":[]}`, "Content-Type", "text/csv").want(415)
	c.request(authz.Nurse, "POST", batchPath, `{"readings":["`+strings.Repeat("x", 2<<20)+`"]}`).want(413, "payload_too_large")
	if n := len(c.queryColumn("SELECT id FROM observations")); n != 0 {
		t.Fatalf("%d refused readings are stored", n)
	}

	// One invalid reading of each kind among a thousand.
	bad := map[int]string{
		17: `1`, 211: `null`, 300: `[]`, 400: "{\"type\":\"weight\",\"device_id\":\"\xff\"}", 500: `{"type":"weight","type":"weight"}`,
		600: strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40), 700: `{}`, 800: `{"type":"mood","patient_id":"x"}`, 999: `{"type":5}`,
	}
	items := make([]string, 1000)
	for i := range items {
		if items[i] = bad[i]; items[i] == "" {
			items[i] = encoded(t, weighed(id, c.now.Add(-time.Duration(i)*time.Minute), 80))
		}
	}
	got := c.request(authz.Nurse, "POST", batchPath, `{"readings":[`+strings.Join(items, ",")+`]}`)
	got.wantAt(object{"accepted": 991.0, "rejected": 9.0, "duplicates": 0.0})
	for i, line := range got.lines() {
		if (line["status"] == "rejected") != (bad[i] != "") {
			t.Errorf("line %d became %v", i, line)
		}
	}
	lines := got.lines()
	for i, fields := range map[int][]string{
		17: {"non_field_errors"}, 400: {"non_field_errors"}, 500: {"type"}, 700: {"measured_at", "patient_id", "type"}, 800: {"measured_at", "patient_id", "type"},
	} {
		if got := slices.Sorted(maps.Keys(lines[i]["errors"].(object))); !slices.Equal(got, fields) {
			t.Errorf("line %d is wrong in %v", i, got)
		}
	}
	again := c.request(authz.Nurse, "POST", batchPath, `{"readings":[`+strings.Join(items, ",")+`]}`)
	again.wantAt(object{"accepted": 0.0, "rejected": 9.0, "duplicates": 991.0})
	if n := len(c.queryColumn("SELECT id FROM observations")); n != 991 {
		t.Errorf("%d are stored", n)
	}
}

// Who may send, and about which patients.
func TestBatchByRole(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	c.wantRoles("POST", batchPath, object{"readings": []any{bp(id, c.now, 120, 80)}},
		authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.Patient)

	own := c.enroll(nil)
	portal := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(own))
	line := bp(id, c.now, 121, 80)
	mine := maps.Clone(line)
	delete(mine, "patient_id")
	lines := c.requestAs(portal, "POST", batchPath, object{"readings": []any{line, mine}}).lines()
	if lines[0]["code"] != "not_found" || lines[0]["errors"].(object)["patient_id"] == nil || lines[1]["status"] != "accepted" {
		t.Errorf("%v", lines)
	}
	if got := c.queryColumn("SELECT patient || source || origin FROM observations WHERE systolic = 121"); !slices.Equal(got, []string{own + "patient_portalpatient"}) {
		t.Errorf("stored %v", got)
	}

	m := c.addClient(object{"scopes": []string{"ingest", "patients.read"}})
	c.requestAsClient(c.token(m, "patients.read"), "POST", batchPath, object{"readings": []any{line}}).want(403, "insufficient_scope")
	c.requestAsClient(c.token(m, "ingest"), "POST", batchPath, object{"readings": []any{bp(id, c.now, 122, 80), bp(id, c.now, 400, 80)}}).wantAt(object{"accepted": 1.0, "rejected": 1.0})
	if got := c.queryColumn("SELECT origin FROM observations WHERE systolic = 122"); !slices.Equal(got, []string{"machine"}) {
		t.Errorf("a client's are %v", got)
	}
	if got := c.queryColumn("SELECT source FROM gateway_events"); !slices.Equal(got, []string{"client"}) {
		t.Errorf("kept as %v", got)
	}
}

// Clinicians outside the care team get a refusal for each reading; emergency access is recorded once per patient.
func TestBatchOutsideTheTeam(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	mine, others := c.enroll(nil), c.enroll(nil)
	c.request(authz.Admin, "PUT", "/patients/"+mine+"/care-team/", object{"members": []object{{"user_id": c.people[authz.Nurse].Number()}}}).want(200)
	body := object{"readings": []any{bp(mine, c.now, 120, 80), bp(others, c.now, 121, 80), bp(others, c.now, 400, 80), bp(others, c.now, 122, 80)}}
	lines := c.request(authz.Nurse, "POST", batchPath, body).lines()
	if lines[0]["status"] != "accepted" || lines[1]["code"] != "permission_denied" || lines[1]["errors"].(object)["patient_id"] == nil || lines[2]["code"] != "validation_error" {
		t.Errorf("%v", lines)
	}
	if kept := c.queryColumn("SELECT id FROM gateway_events"); len(kept) != 0 {
		t.Errorf("kept %v", kept)
	}
	c.request(authz.Nurse, "POST", batchPath, body, "X-Emergency-Access", "found unconscious at home").wantAt(object{"accepted": 2.0, "duplicates": 1.0, "rejected": 1.0})
	if _, n, err := audit.List(c.app, audit.Filter{Event: string(audit.EmergencyAccess)}, 0, 10); n != 1 || err != nil {
		t.Errorf("%d emergencies (%v)", n, err)
	}
}

// A batch counts as one request, so 10,000 readings take ten; repeated under a key, it returns the same result for each
// reading.
func TestBackfillWithLimits(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) {
		e.Limits = ratelimit.NewLimiter(map[ratelimit.Class]ratelimit.Policy{ratelimit.Client: {Requests: 600, Window: time.Minute}, ratelimit.User: {Requests: 1000, Window: time.Hour}})
	})
	id := c.enroll(nil)
	token := c.token(c.addClient(nil), "ingest")
	for batch := range 10 {
		var sent []any
		for i := range 100 {
			sent = append(sent, weighed(id, c.now.Add(-time.Duration(batch*100+i)*time.Hour), 80))
		}
		body := encoded(t, object{"readings": sent})
		first := c.postWithKey(token, batchPath, body, fmt.Sprint("batch ", batch))
		if left := first.Header().Get("X-RateLimit-Remaining"); left != strconv.Itoa(600-2*batch-1) {
			t.Errorf("%s requests are left after batch %d", left, batch)
		}
		again := answered(t, c.postWithKey(token, batchPath, body, fmt.Sprint("batch ", batch)), 200, "", true)
		if answered(t, first, 200, "", false) != again || !strings.HasPrefix(again, `{"accepted":100,"duplicates":0,"rejected":0,`) {
			t.Errorf("batch %d is answered with %.80s", batch, again)
		}
	}
	if n := len(c.queryColumn("SELECT id FROM observations")); n != 1000 {
		t.Errorf("%d are stored", n)
	}
}

// If no reading can be stored, the whole request fails without results for single readings, so that the caller sends all
// of it again.
func TestBatchWithoutAWriter(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(nil)
	body := encoded(t, object{"readings": []any{bp(id, c.now, 120, 80)}})
	if _, err := c.app.DB().NewQuery("CREATE TRIGGER no BEFORE INSERT ON observations BEGIN SELECT RAISE(ABORT, 'full'); END").Execute(); err != nil {
		t.Fatal(err)
	}
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), batchPath, body, "b"), 503, "service_unavailable", false)
	if _, err := c.app.DB().NewQuery("DROP TRIGGER no").Execute(); err != nil {
		t.Fatal(err)
	}
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), batchPath, body, "b"), 200, "", false)
}
