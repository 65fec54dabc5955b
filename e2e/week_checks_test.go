package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Seven days of a practice, hour by hour: every user is notified of every event at the right local hour, and no outgoing
// message identifies a patient.
func TestWeek(t *testing.T) {
	w := newWeek(t)
	w.enrol()
	w.runHours(w.story())
	t.Run("everything there is", w.wantEveryKind)
	t.Run("nothing private", w.wantNoMark)
	t.Run("quiet hours", w.wantQuietNights)
	t.Run("escalations at night", w.wantEscalationsAtNight)
	t.Run("daily summaries and reminders", w.wantReminders)
	t.Run("one push for an event", w.wantOnePushEach)
}

// wantEveryKind checks that every notification of the catalog occurred; otherwise the other checks would prove little.
func (w *week) wantEveryKind(t *testing.T) {
	for what, c := range map[string]struct {
		want  []string
		query string
	}{
		"kinds of announcements": {texts(notifications.Kinds()), "SELECT DISTINCT kind FROM announcements ORDER BY kind"},
		"types of notifications": {notifications.Types(), "SELECT DISTINCT type FROM notifications ORDER BY type"},
		"types that were pushed": {notifications.Types(), `SELECT DISTINCT n.type FROM push_deliveries d JOIN notifications n ON n.id = d.notification
			WHERE d.status = 'sent' ORDER BY n.type`},
		"mails that were sent": {texts(notifications.Templates()), "SELECT DISTINCT template FROM mails WHERE status = 'sent' ORDER BY template"},
	} {
		var got []string
		if err := w.app.DB().NewQuery(c.query).Column(&got); err != nil {
			t.Fatal(err)
		}
		if what == "types that were pushed" {
			c.want = slices.DeleteFunc(slices.Clone(c.want), func(one string) bool { return one == "escalation_withdrawn" || one == "late_reading" }) // in the app only
		}
		if what == "mails that were sent" {
			c.want = slices.DeleteFunc(slices.Clone(c.want), func(one string) bool { return one == "identity_linked" || one == "program_access" }) // see TestSignOnWithDex and TestProgramAccessNeedsAFreshSignIn
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func texts[T ~string](names []T) (list []string) {
	for _, name := range names {
		list = append(list, string(name))
	}
	return list
}

var (
	digit = regexp.MustCompile(`\p{Nd}`)
	topic = regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`)
)

// wantNoMark searches everything sent for every mark in every encoding; as a control, it finds them in the notification
// lists.
func (w *week) wantNoMark(t *testing.T) {
	sent := map[string]haystack{"the pushes": newHaystack(w.pushes.opened()), "the log": newHaystack(w.log.bytes()), "the texts": newHaystack(w.texts.all())}
	for i, mail := range w.mail.Messages() {
		sent[fmt.Sprintf("mail %d: %s", i, mail.Subject)] = newHaystack(append(mail.Raw, mail.Subject+mail.Text+mail.HTML...))
	}
	for name, forms := range weekMarks {
		for _, place := range search(sent, forms) {
			t.Errorf("the %s is in %s", name, place)
		}
	}
	delete(sent, "the log") // may contain record ids
	for _, place := range search(sent, []string{w.ann, w.bob}) {
		t.Errorf("the id of a patient is in %s", place)
	}
	for _, p := range w.pushes.all() {
		if p.message == nil {
			continue // a test of the subscription
		}
		if words := fmt.Sprint(p.message["title"], p.message["body"]); digit.MatchString(words) {
			t.Errorf("a push contains numbers: %s", words)
		}
		if !topic.MatchString(p.header.Get("Topic")) {
			t.Errorf("a push has the topic %q", p.header.Get("Topic"))
		}
	}
	if !bytes.Contains(w.log.bytes(), []byte("job done")) {
		t.Error("the log is empty")
	}
	entries, err := w.app.FindAllRecords(collections.Notifications)
	if err != nil {
		t.Fatal(err)
	}
	var lists []byte
	for _, entry := range entries {
		lists = append(lists, entry.GetString("title")+entry.GetString("body")...)
	}
	for _, name := range []string{
		"first name", "last name", "MRN", "reading", "escalation reason", "denial", "emergency", "patient message", "questionnaire", "stray text", "urgent text",
	} {
		if len(search(map[string]haystack{"": newHaystack(lists)}, weekMarks[name])) == 0 {
			t.Errorf("the %s is in no notification list: its absence proves nothing", name)
		}
	}
}

// of returns the pushes to a user on a channel.
func (w *week) of(email, channel string) (list []pushed) {
	for _, p := range w.pushes.all() {
		if p.path == "/"+email && p.message["channel"] == channel {
			list = append(list, p)
		}
	}
	return list
}

// wantQuietNights checks that no alert push came between 22:00 and 7:00 local time, before and after the clock change,
// though there were readings out of range, and that all alerts of the day were pushed.
func (w *week) wantQuietNights(t *testing.T) {
	for email, zone := range map[string]*time.Location{provider: berlin, nurse: sydney} {
		quiet := func(at time.Time) bool { return at.In(zone).Hour() < 7 || at.In(zone).Hour() >= 22 }
		heard := map[time.Time]bool{}
		for _, p := range w.of(email, notifications.Alerts) {
			if heard[p.at.Truncate(time.Hour)] = true; quiet(p.at) {
				t.Errorf("%s received a push in quiet hours at %s", email, p.at.In(zone))
			}
		}
		offsets, nights := map[int]bool{}, 0
		for _, at := range w.measured {
			_, offset := at.In(zone).Zone()
			offsets[offset] = true
			if quiet(at) {
				nights++
			} else if !heard[at] {
				t.Errorf("%s was not notified of the reading of %s", email, at.In(zone))
			}
		}
		if len(offsets) != 2 || nights < 7 {
			t.Errorf("%s: %d readings at night, and clocks at %v", zone, nights, offsets)
		}
	}
}

// wantEscalationsAtNight checks that escalations ignore quiet hours.
func (w *week) wantEscalationsAtNight(t *testing.T) {
	for email, c := range map[string]struct {
		zone *time.Location
		want map[string]string // body by local time
	}{
		provider: {berlin, map[string]string{
			"2026-04-01T03:00": "An escalation was opened for a patient.", "2026-04-01T04:00": "An escalation has not been answered in time.",
		}},
		nurse: {sydney, map[string]string{"2026-04-02T02:00": "An urgent escalation was assigned to you."}},
	} {
		got := map[string][]string{}
		for _, p := range w.of(email, notifications.Escalations) {
			at := p.at.In(c.zone).Format("2006-01-02T15:04")
			got[at] = append(got[at], fmt.Sprint(p.message["body"]))
		}
		for at, body := range c.want {
			if !slices.Contains(got[at], body) {
				t.Errorf("at %s %s got %v, want %q", at, email, got[at], body)
			}
		}
	}
}

// wantReminders checks that scheduled notifications came at their hour in the user's time zone, each day, and at no other
// time.
func (w *week) wantReminders(t *testing.T) {
	days := func(from string, n int, clock string) (list []string) {
		first, _ := time.Parse(time.DateOnly, from)
		for day := range n {
			list = append(list, first.AddDate(0, 0, day).Format(time.DateOnly)+clock)
		}
		return list
	}
	const summary, reviews, tasks = "Your daily summary is ready.", "Patients are waiting for your review.", "Billing tasks are waiting."
	for _, c := range []struct {
		email   string
		zone    *time.Location
		channel string
		body    string
		want    []string
	}{
		{provider, berlin, notifications.DailyDigest, summary, days("2026-03-29", 7, "T07:00")},
		{nurse, sydney, notifications.DailyDigest, summary, days("2026-03-30", 7, "T07:00")},
		{manager, newYork, notifications.DailyDigest, summary, days("2026-03-29", 7, "T07:00")},
		{provider, berlin, notifications.Reminders, reviews, days("2026-03-29", 7, "T09:00")},
		{nurse, sydney, notifications.Reminders, reviews, days("2026-03-30", 6, "T09:00")},
		{monitor, newYork, notifications.Reminders, tasks, append([]string{"2026-03-29T04:00"}, days("2026-03-30", 1, "T09:00")...)},
	} {
		var got []string
		for _, p := range w.of(c.email, c.channel) {
			if p.message["body"] == c.body {
				got = append(got, p.at.In(c.zone).Format("2006-01-02T15:04"))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, %q: %s", c.email, c.body, diff)
		}
	}
}

// wantOnePushEach checks that no user got two pushes for one event.
func (w *week) wantOnePushEach(t *testing.T) {
	seen := map[string]int{}
	for _, p := range w.pushes.all() {
		if p.message != nil {
			seen[fmt.Sprint(p.path, " ", p.message["notification_id"])]++
		}
	}
	for what, times := range seen {
		if times != 1 {
			t.Errorf("%s was pushed %d times", what, times)
		}
	}
}
