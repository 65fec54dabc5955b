package alerts_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var nurse = audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{})

func find(t *testing.T, app core.App, id string) *collections.Alert {
	t.Helper()
	alert, err := alerts.Find(app, collections.Number(id))
	if err != nil {
		t.Fatal(err)
	}
	return alert
}

// inStatus stores an alert in a status, acknowledged by a colleague unless it is active.
func inStatus(t *testing.T, app core.App, status alerts.Status) *collections.Alert {
	t.Helper()
	id := store(t, app, alerts.Draft{Finding: alerts.Finding{Type: "pulse", Level: alerts.Warning, Message: "Pulse 120 bpm."}}, now)
	changes := dbx.Params{"status": string(status), "acknowledged": status != alerts.StatusActive}
	if status != alerts.StatusActive {
		changes["acknowledged_by"], changes["acknowledged_at"] = "colleague@vigil.test", collections.FormatInstant(now)
	}
	if _, err := app.DB().Update(collections.Alerts, changes, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	return find(t, app, id)
}

// wantColumns checks the stored columns of an alert.
func wantColumns(t *testing.T, app core.App, id string, want map[string]any) {
	t.Helper()
	stored, err := app.FindRecordById(collections.Alerts, id)
	if err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(want)
	for column := range want {
		got[column] = stored.Get(column)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// trailOf returns an alert's audit entries, oldest first: event, actor and the changed names.
func trailOf(t *testing.T, app core.App, id string) (list []string) {
	t.Helper()
	err := audit.Each(app, audit.Filter{ResourceType: "Alert", ResourceID: strconv.FormatInt(collections.Number(id), 10)}, func(e audit.StoredEntry) error {
		line := e.Event + " " + e.ActorEmail
		for _, name := range slices.Sorted(maps.Keys(e.Changes)) {
			line += " " + name
		}
		list = append(list, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every move from every state: the stored columns and the audit trail.
func TestAct(t *testing.T) {
	app := vigiltest.NewApp(t)
	later := now.Add(time.Minute)
	at := collections.FormatInstant(later)
	for _, test := range []struct {
		from   alerts.Status
		action alerts.Action
		want   map[string]any // nil: rejected
		trail  string
	}{
		{alerts.StatusActive, alerts.Action{Move: alerts.Acknowledge, Notes: "Called."}, map[string]any{
			"status": "acknowledged", "acknowledged": true, "acknowledged_by": "nurse@vigil.test", "acknowledged_at": at, "notes": "Called.",
			"resolved_by": "", "updated_at": at, "follow_up_required": false,
		}, "alert.acknowledge nurse@vigil.test notes status"},
		{alerts.StatusActive, alerts.Action{Move: alerts.Resolve, Outcome: "resolved", ClinicalNote: "Fine."}, map[string]any{
			"status": "resolved", "acknowledged": true, "acknowledged_by": "nurse@vigil.test", "resolved_by": "nurse@vigil.test", "resolved_at": at,
			"outcome": "resolved", "clinical_note": "Fine.", "notes": "",
		}, "alert.resolve nurse@vigil.test clinical_note outcome status"},
		{alerts.StatusActive, alerts.Action{Move: alerts.Annotate, Notes: "Waiting."}, map[string]any{
			"status": "active", "acknowledged": false, "acknowledged_by": "", "notes": "Waiting.", "updated_at": at,
		}, "alert.note nurse@vigil.test notes"},
		{alerts.StatusAcknowledged, alerts.Action{Move: alerts.Acknowledge, FollowUpAt: later.Add(time.Hour)}, map[string]any{
			"status": "acknowledged", "acknowledged_by": "colleague@vigil.test", "acknowledged_at": collections.FormatInstant(now), "follow_up_required": true,
			"follow_up_at": collections.FormatInstant(later.Add(time.Hour)), "follow_up_by": "nurse@vigil.test", "follow_up_told": false,
		}, "alert.acknowledge nurse@vigil.test"},
		{alerts.StatusAcknowledged, alerts.Action{Move: alerts.Resolve}, map[string]any{
			"status": "resolved", "acknowledged_by": "colleague@vigil.test", "resolved_by": "nurse@vigil.test",
		}, "alert.resolve nurse@vigil.test status"},
		{alerts.StatusResolved, alerts.Action{Move: alerts.Annotate, Notes: "Late."}, nil, ""},
		{alerts.StatusAutoResolved, alerts.Action{Move: alerts.Acknowledge}, nil, ""},
	} {
		alert := inStatus(t, app, test.from)
		err := alerts.Act(app, alert, test.action, nurse, later)
		if test.want == nil {
			if vigiltest.Code(err) != "invalid_state" || len(trailOf(t, app, alert.Id)) != 0 {
				t.Errorf("%s of one that is %s: %v", test.action.Move, test.from, err)
			}
			wantColumns(t, app, alert.Id, map[string]any{"status": string(test.from), "updated_at": collections.FormatInstant(now)})
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		wantColumns(t, app, alert.Id, test.want)
		if diff := cmp.Diff([]string{test.trail}, trailOf(t, app, alert.Id)); diff != "" {
			t.Errorf("%s of one that is %s: %s", test.action.Move, test.from, diff)
		}
	}
	if _, err := alerts.Find(app, 9999); vigiltest.Code(err) != "not_found" {
		t.Errorf("found an alert that is not: %v", err)
	}
}

// Notes are appended, each on a new line, up to the limit; those of the system are by "system".
func TestNotesAreAppended(t *testing.T) {
	app := vigiltest.NewApp(t)
	alert := inStatus(t, app, alerts.StatusActive)
	for _, text := range []phi.Text{"One.", "Two."} {
		if err := alerts.Act(app, alert, alerts.Action{Move: alerts.Annotate, Notes: text}, nurse, now); err != nil {
			t.Fatal(err)
		}
	}
	wantColumns(t, app, alert.Id, map[string]any{"notes": "One.\nTwo.", "clinical_note": ""})
	long := phi.Text(strings.Repeat("é", 4990))
	if err := alerts.Act(app, alert, alerts.Action{Move: alerts.Annotate, Notes: long}, nurse, now); err != nil {
		t.Errorf("5000 characters: %v", err)
	}
	if err := alerts.Act(app, alert, alerts.Action{Move: alerts.Annotate, Notes: "!"}, nurse, now); vigiltest.Code(err) != "validation_error" {
		t.Errorf("more than 5000 characters: %v", err)
	}
	if err := alerts.Act(app, alert, alerts.Action{Move: alerts.Resolve}, audit.System(), now); err != nil {
		t.Fatal(err)
	}
	wantColumns(t, app, alert.Id, map[string]any{"acknowledged_by": "system", "resolved_by": "system"})
}

func TestAttach(t *testing.T) {
	app := vigiltest.NewApp(t)
	alert := inStatus(t, app, alerts.StatusActive)
	for _, id := range []string{"000000000000005", ""} {
		if err := alerts.Attach(app, alert, id, nurse, now); err != nil {
			t.Fatal(err)
		}
		wantColumns(t, app, alert.Id, map[string]any{"escalation": "000000000000005", "status": "active"})
	}
	if diff := cmp.Diff([]string{"alert.escalate nurse@vigil.test", "alert.escalate nurse@vigil.test"}, trailOf(t, app, alert.Id)); diff != "" {
		t.Error(diff)
	}
}

// A change in the dashboard amounts to a move, or is rejected by column; nothing rejected is saved or audited.
func TestGuard(t *testing.T) {
	app := vigiltest.NewApp(t)
	later := now.Add(time.Hour)
	for _, test := range []struct {
		name    string
		from    alerts.Status
		change  map[string]any
		move    alerts.Move
		refused string
		want    map[string]any
		trail   string
	}{
		{"nothing", alerts.StatusResolved, nil, "", "", map[string]any{"updated_at": collections.FormatInstant(now)}, ""},
		{"acknowledged", alerts.StatusActive, map[string]any{"status": "acknowledged", "notes": "By hand."}, alerts.Acknowledge, "", map[string]any{
			"acknowledged": true, "acknowledged_by": "nurse@vigil.test", "notes": "By hand.", "updated_at": collections.FormatInstant(later),
		}, "alert.acknowledge nurse@vigil.test notes status"},
		{"resolved", alerts.StatusAcknowledged, map[string]any{"status": "resolved", "outcome": "seen"}, alerts.Resolve, "", map[string]any{
			"acknowledged_by": "colleague@vigil.test", "resolved_by": "nurse@vigil.test", "outcome": "seen",
		}, "alert.resolve nurse@vigil.test outcome status"},
		{"a note", alerts.StatusActive, map[string]any{"clinical_note": "Fine."}, alerts.Annotate, "", map[string]any{
			"acknowledged": false, "clinical_note": "Fine.",
		}, "alert.note nurse@vigil.test clinical_note"},
		{"a follow-up without a time is due tomorrow", alerts.StatusActive, map[string]any{"follow_up_required": true}, alerts.Annotate, "", map[string]any{
			"follow_up_at": collections.FormatInstant(later.Add(24 * time.Hour)), "follow_up_by": "nurse@vigil.test", "follow_up_told": false,
		}, "alert.note nurse@vigil.test follow_up_required"},
		{
			"a follow-up", alerts.StatusActive,
			map[string]any{"follow_up_required": true, "follow_up_at": collections.FormatInstant(later.Add(time.Hour))},
			alerts.Annotate, "",
			map[string]any{"follow_up_at": collections.FormatInstant(later.Add(time.Hour))},
			"alert.note nurse@vigil.test follow_up_at follow_up_required",
		},
		{"back to active", alerts.StatusAcknowledged, map[string]any{"status": "active"}, "", "status", nil, ""},
		{"as the system does", alerts.StatusActive, map[string]any{"status": "auto_resolved"}, "", "status", nil, ""},
		{"one that is over", alerts.StatusResolved, map[string]any{"notes": "Late."}, "", "status", nil, ""},
		{"what happened", alerts.StatusActive, map[string]any{"level": "normal"}, "", "level", nil, ""},
		{"who dealt with it", alerts.StatusActive, map[string]any{"acknowledged_by": "me"}, "", "acknowledged_by", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			alert := inStatus(t, app, test.from)
			alert.Load(test.change)
			saved := 0
			move, err := alerts.Guard(app, alert, nurse, later, func() error {
				saved++
				return alert.Store(app)
			})
			var by validation.Errors
			if errors.As(err, &by) != (test.refused != "") || (test.refused != "" && by[test.refused] == nil) || (test.refused == "" && err != nil) {
				t.Fatalf("error %v", err)
			}
			if move != test.move || (saved == 1) != (test.refused == "") {
				t.Errorf("move %q, saved %d times", move, saved)
			}
			wantColumns(t, app, alert.Id, test.want)
			if got := strings.Join(trailOf(t, app, alert.Id), ","); got != test.trail {
				t.Errorf("recorded: %q", got)
			}
		})
	}
	alert := inStatus(t, app, alerts.StatusActive)
	alert.Load(map[string]any{"status": "resolved"})
	full := errors.New("the disk is full")
	if _, err := alerts.Guard(app, alert, nurse, later, func() error { return full }); !errors.Is(err, full) || len(trailOf(t, app, alert.Id)) > 0 {
		t.Errorf("what was not saved is recorded (%v)", err)
	}
}

// The system resolves alerts about a device that recovered, and all of a patient's; the acknowledging user stays on record.
func TestResolvedBySystem(t *testing.T) {
	app := vigiltest.NewApp(t)
	battery := func(patientID, device, alertType string) string {
		return store(t, app, alerts.Draft{PatientID: patientID, DeviceID: device, Finding: alerts.Finding{Type: alertType, Level: alerts.Warning}}, now)
	}
	mine, theirs := battery("p1", "D1", alerts.TypeDeviceBattery), battery("p2", "D1", alerts.TypeDeviceBattery)
	other, silent := battery("p1", "D2", alerts.TypeDeviceBattery), battery("p1", "D1", alerts.TypeNoReading24h)
	later := now.Add(time.Hour)
	about := func(device, patientID string, want ...string) {
		t.Helper()
		ended, err := alerts.ResolveAbout(app, device, alerts.TypeDeviceBattery, patientID, later)
		var ids []string
		for _, alert := range ended {
			ids = append(ids, alert.ID)
		}
		if diff := cmp.Diff(want, ids); diff != "" || err != nil {
			t.Errorf("about %s of %q: %s (%v)", device, patientID, diff, err)
		}
	}
	about("", "")
	about("D1", "p2", theirs)
	about("D1", "", mine)
	about("D1", "")
	wantColumns(t, app, mine, map[string]any{
		"status": "auto_resolved", "acknowledged": true, "acknowledged_by": "system", "acknowledged_at": collections.FormatInstant(later),
		"resolved_by": "system", "resolved_at": collections.FormatInstant(later), "updated_at": collections.FormatInstant(later),
	})
	if err := alerts.AuditAutoResolved(app, collections.ResolvedAlert{ID: mine, PatientID: "p1"}, later); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"alert.auto_resolve "}, trailOf(t, app, mine)); diff != "" {
		t.Error(diff)
	}

	if err := alerts.Act(app, find(t, app, other), alerts.Action{Move: alerts.Acknowledge}, nurse, now); err != nil {
		t.Fatal(err)
	}
	if ids, err := alerts.ResolveOpen(app, "p1", later); err != nil || len(ids) != 2 {
		t.Errorf("resolved %v (%v)", ids, err)
	}
	wantColumns(t, app, other, map[string]any{"status": "resolved", "acknowledged_by": "nurse@vigil.test", "resolved_by": "system"})
	wantColumns(t, app, silent, map[string]any{"status": "resolved", "acknowledged_by": "system"})
	wantColumns(t, app, mine, map[string]any{"status": "auto_resolved"})
}

// The trail of an alert includes its notifications.
func TestTrail(t *testing.T) {
	app := vigiltest.NewApp(t)
	id, err := alerts.Raise(app, alerts.Draft{PatientID: patient, Finding: alerts.Finding{Type: "pulse", Level: alerts.Critical, Message: "Pulse 140 bpm."}}, now)
	if err != nil {
		t.Fatal(err)
	}
	alert := find(t, app, id)
	for i, action := range []alerts.Action{
		{Move: alerts.Annotate, Notes: "Waiting."},
		{Move: alerts.Acknowledge, Outcome: "monitoring", ClinicalNote: "Stable."},
		{Move: alerts.Resolve},
	} {
		if err := alerts.Act(app, alert, action, nurse, now.Add(time.Duration(i+2)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	notified := dbx.Params{"id": "announcement001", "key": alerts.AnnouncementKey(id), "told_at": collections.FormatInstant(now.Add(time.Minute))}
	if _, err := app.DB().Insert(collections.Announcements, notified).Execute(); err != nil {
		t.Fatal(err)
	}
	trail, err := alerts.Trail(app, id)
	if err != nil {
		t.Fatal(err)
	}
	want := []alerts.TrailStep{
		{Action: "created", At: now, Actor: "system"},
		{Action: "notified", At: now.Add(time.Minute), Actor: "system"},
		{Action: "note_added", At: now.Add(2 * time.Minute), Actor: "nurse@vigil.test", Detail: "Waiting."},
		{Action: "acknowledged", At: now.Add(3 * time.Minute), Actor: "nurse@vigil.test", Detail: "monitoring"},
		{Action: "resolved", At: now.Add(4 * time.Minute), Actor: "nurse@vigil.test"},
	}
	if diff := cmp.Diff(want, trail); diff != "" {
		t.Error(diff)
	}
}
