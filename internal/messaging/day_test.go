package messaging_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// phone counts what reaches each number. down means that no connection is made; dies, that the process is killed during the request.
type phones struct {
	messaging.Provider // of which only Send is used
	now                func() time.Time
	down               bool
	dies               int // every so many requests; 0 for never
	calls              int
	got                map[string][]time.Time
}

type killed struct{}

func (p *phones) Send(_ context.Context, m messaging.Outgoing, now time.Time) messaging.Result {
	if p.down {
		return messaging.Result{Outcome: messaging.NotSent}
	}
	p.calls++
	p.got[m.To.Reveal()] = append(p.got[m.To.Reveal()], now)
	if p.dies > 0 && p.calls%p.dies == 0 {
		panic(killed{})
	}
	return messaging.Result{Outcome: messaging.Accepted, ProviderID: fmt.Sprint("SM", p.calls)}
}

// ward stores patients as their fields are stored, without the rules of the API.
func ward(t *testing.T, app core.App, n int, start time.Time) (ids []string) {
	t.Helper()
	zones := []string{"", "America/Los_Angeles", "Pacific/Honolulu", "America/New_York"}
	for i := range n {
		p, err := collections.NewPatient(app)
		if err != nil {
			t.Fatal(err)
		}
		for column, value := range map[string]any{
			"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female", "mrn": fmt.Sprintf("W-%d", i), "active": true,
			"phone": fmt.Sprintf("+1212555%04d", i), "phone_index": fmt.Sprint(i), "time_zone": zones[i%len(zones)],
			"monitoring_schedule": collections.Schedule{"blood_pressure": {PerDay: 1}}, "created_at": collections.FormatInstant(start.AddDate(0, 0, -10)),
		} {
			p.Set(column, value)
		}
		if i%7 == 6 {
			p.Set("reminder_at", "22:30") // outside the hours: suppressed
		}
		if err := app.Save(p); err != nil {
			t.Fatal(err)
		}
		if i%10 != 9 {
			consent, err := collections.NewConsent(app)
			if err != nil {
				t.Fatal(err)
			}
			for column, value := range map[string]any{
				"patient": p.Id, "type": "messaging", "method": "written", "granted_at": collections.FormatInstant(start.AddDate(0, 0, -5)), "created_at": collections.FormatInstant(start),
			} {
				consent.Set(column, value)
			}
			if err := app.Save(consent); err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, p.Id)
	}
	return ids
}

// In a day of 1,000 patients each who missed a reading is reminded once: none without consent, after STOP, on hold or outside the hours, and none
// twice, although the process is killed during every fiftieth request and the provider is away for an hour.
func TestDayOfReminders(t *testing.T) {
	app := vigiltest.NewApp(t)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC) // midnight in Honolulu
	collections.SetPracticeZone(app, newYork)
	messaging.Enable(app, messaging.Practice{Name: "Hill Clinic", Hours: messaging.Hours{From: "08:00", Until: "21:00"}})
	now := start
	clock := func() time.Time { return now }
	provider := &phones{now: clock, dies: 50, got: map[string][]time.Time{}}
	reminders := messaging.Reminders{Devices: devices.NewEngine(devices.Rules{PracticeZone: newYork, MissedDaysBeforeEscalation: 3}), At: "18:00", Zone: newYork}
	ids := ward(t, app, 1000, start)

	stopped, held, deceased := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i, id := range ids {
		switch i % 20 {
		case 3:
			stopped[i] = true
		case 5:
			held[i] = true
			set(t, app, id, dbx.Params{"hold_reason": "hospital", "hold_from": collections.FormatInstant(start), "hold_until": collections.FormatInstant(start.AddDate(0, 0, 3))})
		case 8:
			deceased[i] = true
			set(t, app, id, dbx.Params{"active": false})
		}
	}
	for now.Before(start.AddDate(0, 0, 1)) {
		if now.Equal(start.Add(12 * time.Hour)) { // 5 p.m. in New York
			for i := range stopped {
				if _, err := patients.StopMessages(app, ids[i], audit.System(), now); err != nil {
					t.Fatal(err)
				}
			}
		}
		hour := now.Sub(start).Hours()
		provider.down = hour >= 13 && hour < 14 // from 6 p.m. in New York
		round(t, app, provider, reminders, clock)
		now = now.Add(10 * time.Minute)
	}

	wanted := 0
	for i := range ids {
		want := 1
		if i%10 == 9 || i%7 == 6 || stopped[i] || held[i] || deceased[i] {
			want = 0
		}
		wanted += want
		got := provider.got[fmt.Sprintf("+1212555%04d", i)]
		if len(got) != want {
			t.Fatalf("patient %d got %d messages, want %d", i, len(got), want)
		}
		p, err := collections.FindPatient(app, ids[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range got {
			if local := at.In(collections.Zone(p.TimeZone(), newYork)).Format("15:04"); local < "18:00" || local >= "20:00" {
				t.Fatalf("patient %d was reminded at %s", i, local)
			}
		}
	}
	counts := map[string]int{}
	var all []struct {
		State string `db:"state"`
		Count int    `db:"n"`
	}
	if err := app.DB().NewQuery("SELECT state, COUNT(*) AS n FROM messages GROUP BY state").All(&all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		counts[c.State] = c.Count
	}
	if counts["sent"]+counts["unknown"] != wanted || counts["unknown"] != wanted/provider.dies || counts["queued"]+counts["sending"] != 0 || counts["suppressed"] == 0 {
		t.Errorf("%d reminders are due: %v", wanted, counts)
	}
}

func set(t *testing.T, app core.App, id string, values dbx.Params) {
	t.Helper()
	if _, err := app.DB().Update(collections.Patients, values, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
}

// round is one run of the job in a new process each time; a kill during a request ends it.
func round(t *testing.T, app core.App, provider messaging.Provider, reminders messaging.Reminders, clock func() time.Time) {
	t.Helper()
	for done := false; !done; {
		func() {
			defer func() {
				if p := recover(); p != nil {
					if _, is := p.(killed); !is {
						panic(p)
					}
				}
			}()
			if _, err := reminders.Queue(t.Context(), app, clock()); err != nil {
				t.Fatal(err)
			}
			worker := messaging.NewWorker(messaging.WorkerOptions{Provider: provider, IsOver: reminders.IsOver, Clock: clock, Log: slog.New(slog.DiscardHandler)})
			if _, err := worker.SendDue(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			done = true
		}()
	}
}

// A patient gets at most one automatic message a day, and a reading that arrives before a reminder is sent ends it.
func TestReminderLimitsAndEnd(t *testing.T) {
	app := vigiltest.NewApp(t)
	start := time.Date(2026, 3, 4, 18, 0, 0, 0, time.UTC)
	collections.SetPracticeZone(app, time.UTC)
	messaging.Enable(app, messaging.Practice{Name: "Hill Clinic", Hours: messaging.Hours{From: "08:00", Until: "21:00"}})
	patient := ward(t, app, 1, start)[0]
	queue := func(cause string, now time.Time) bool {
		t.Helper()
		queued := false
		err := app.RunInTransaction(func(tx core.App) (err error) {
			queued, err = messaging.QueueAutomatic(tx, messaging.Automatic{PatientID: patient, Template: messaging.BatteryLow, Cause: cause}, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return queued
	}
	sent := 0
	for day := range 9 {
		now := start.AddDate(0, 0, day)
		if queue(fmt.Sprint("a", day), now) {
			sent++
		}
		if queue(fmt.Sprint("a", day), now) || queue(fmt.Sprint("b", day), now) {
			t.Errorf("two messages on day %d", day)
		}
	}
	if sent != 5 { // 3 of the first seven days, and again from the eighth
		t.Errorf("%d messages in nine days", sent)
	}
	page, total, err := collections.PageOfMessages(app, patient, 0, 50)
	if err != nil || total != 18 {
		t.Fatalf("%d stored: %v", total, err)
	}
	if page[0].Text() != phi.Text(messaging.BatteryLow.Fill("en", "Hill Clinic", "")) || fmt.Sprint(page[0].Text()) == page[0].Text().Reveal() {
		t.Error("the text is wrong or prints")
	}
}
