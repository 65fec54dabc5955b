package notifications_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// mailPractice is an app that sends mails to a real SMTP server on a local socket.
type mailPractice struct {
	t       *testing.T
	app     *tests.TestApp
	catcher *sandbox.MailCatcher
	mailer  *notifications.Mailer
	user    *collections.User

	lock sync.Mutex
	now  time.Time
}

func (p *mailPractice) clock() time.Time {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.now
}

func (p *mailPractice) wait(d time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.now = p.now.Add(d)
}

func newMailPractice(t *testing.T, change ...func(*notifications.MailerOptions)) *mailPractice {
	t.Helper()
	o := &mailPractice{t: t, app: vigiltest.NewApp(t), now: vigiltest.Clock}
	var err error
	if o.catcher, err = sandbox.NewMailCatcher(o.clock, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.catcher.Close() })
	o.app.OnMailerSend().UnbindAll() // the test app would intercept mails
	smtp := &o.app.Settings().SMTP
	smtp.Enabled, smtp.Host, smtp.Port = true, "127.0.0.1", o.catcher.Port()
	options := notifications.MailerOptions{
		Configured: true, Clock: o.clock, Log: slog.New(slog.DiscardHandler),
		Resolve: func(core.App, *collections.Mail, time.Time) (bool, error) { return false, nil },
	}
	options.From.Name, options.From.Address = "Vigil", "vigil@practice.test"
	for _, f := range change {
		f(&options)
	}
	o.mailer = notifications.NewMailer(options)
	o.user = vigiltest.User(t, o.app, authz.Nurse)
	return o
}

func (p *mailPractice) queue(template notifications.Template, parameters map[string]string) {
	p.t.Helper()
	err := p.app.RunInTransaction(func(tx core.App) error {
		return notifications.QueueMail(tx, template, p.user, parameters, p.clock())
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *mailPractice) send() notifications.MailCounts {
	p.t.Helper()
	round, err := p.mailer.SendDue(p.t.Context(), p.app.BaseApp)
	if err != nil {
		p.t.Fatal(err)
	}
	return round
}

// only returns the single mail in the outbox.
func (p *mailPractice) only() *core.Record {
	p.t.Helper()
	records, err := p.app.FindAllRecords(collections.Mails)
	if err != nil || len(records) != 1 {
		p.t.Fatalf("%d mails, %v", len(records), err)
	}
	return records[0]
}

func TestEveryMailHasTextAndHTML(t *testing.T) {
	o := newMailPractice(t)
	link := "https://vigil.example.org/reset-password?token=a&b=<script>"
	parameters := map[string]string{"link": link, "email": "nurse@vigil.test", "address": "https://vigil.example.org", "left": "9"}
	for _, template := range notifications.Templates() {
		o.queue(template, parameters)
	}
	if round := o.send(); round.Sent != len(notifications.Templates()) || round.Failed+round.DeadLettered+round.Dropped != 0 {
		t.Fatalf("round %+v", round)
	}
	for _, mail := range o.catcher.Messages() {
		if mail.From != "vigil@practice.test" || len(mail.To) != 1 || mail.To[0] != o.user.Email() || mail.Subject == "" {
			t.Errorf("envelope %s to %v: %q", mail.From, mail.To, mail.Subject)
		}
		if strings.TrimSpace(mail.Text) == "" || !strings.Contains(mail.HTML, "<p>") || strings.Contains(mail.HTML, "<script>") || strings.Contains(mail.Text, "{{") {
			t.Errorf("%s: text %q, html %q", mail.Subject, mail.Text, mail.HTML)
		}
		if !strings.Contains(string(mail.Raw), "Auto-Submitted: auto-generated") || strings.Contains(mail.Text, "Test Person") {
			t.Errorf("%s: %s", mail.Subject, mail.Raw)
		}
	}
	for _, template := range []notifications.Template{notifications.Welcome, notifications.PasswordReset} {
		found := false
		for _, mail := range o.catcher.Messages() {
			found = found || mail.Subject == template.Subject() && strings.Contains(mail.Text, link)
		}
		if !found {
			t.Errorf("%s has no link", template)
		}
	}
}

// Patients, and caregivers of a patient, get every mail in the patient's language, if there are texts in it; staff get English.
func TestMailsInThePatientsLanguage(t *testing.T) {
	o := newMailPractice(t)
	for _, c := range []struct {
		language, want string
		isCaregiver    bool
	}{{"es-MX", "es", false}, {"es", "es", true}, {"fr", "en", false}, {"", "en", true}, {"est", "en", false}} {
		patient := vigiltest.Patient(t, o.app, dbx.Params{"preferred_language": c.language, "mrn": "MRN-" + c.language})
		if o.user = vigiltest.User(t, o.app, authz.Patient, vigiltest.PortalOf(patient)); c.isCaregiver {
			o.user = vigiltest.User(t, o.app, authz.Patient)
			if _, err := collections.AddCaregiver(o.app, collections.CaregiverDraft{PatientID: patient, UserID: o.user.Id, Relationship: "child", Scope: "read"}, o.clock()); err != nil {
				t.Fatal(err)
			}
		}
		before := len(o.catcher.Messages())
		for _, template := range []notifications.Template{notifications.PasswordChanged, notifications.PasswordReset, notifications.CaregiverAdded} {
			o.queue(template, map[string]string{"link": "https://vigil.example.org/reset-password?token=a", "email": "x@vigil.test", "address": "https://vigil.example.org"})
		}
		o.send()
		for _, mail := range o.catcher.Messages()[before:] {
			isSpanish := strings.Contains(mail.Text, "Si no")
			if isSpanish != (c.want == "es") || !strings.Contains(mail.HTML, `lang="`+c.want+`"`) {
				t.Errorf("%q, caregiver %v: %s", c.language, c.isCaregiver, mail.Text)
			}
			if strings.Contains(mail.Text, "token=a") && strings.Contains(mail.Text, "&lang=es") != isSpanish {
				t.Errorf("%q: the link is %s", c.language, mail.Text)
			}
		}
	}
}

func TestSentMailParametersAreDeleted(t *testing.T) {
	o := newMailPractice(t)
	o.queue(notifications.PasswordReset, map[string]string{"link": "https://vigil.example.org/?token=secret-token"})
	var sealed string
	if err := o.app.DB().NewQuery("SELECT parameters || recipient FROM mails").Row(&sealed); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sealed, "secret-token") || strings.Contains(sealed, "@") {
		t.Errorf("readable on disk: %s", sealed)
	}
	o.send()
	if m := o.only(); m.GetString("status") != "sent" || m.GetString("parameters") != "" || m.GetString("sent_at") != collections.FormatInstant(o.clock()) || m.GetInt("attempts") != 1 {
		t.Errorf("sent %v", m.PublicExport())
	}
	if round := o.send(); round != (notifications.MailCounts{}) || len(o.catcher.Messages()) != 1 {
		t.Errorf("sent again: %+v", round)
	}
	rows, err := collections.AuditRows(o.app, "", "~", 10)
	if err != nil || len(rows) != 1 || rows[0].Event != string(audit.NotificationSent) || rows[0].Outcome != "0" {
		t.Errorf("recorded %v, %v", rows, err)
	}
}

// If the mail server refuses or is down, the mail is retried with growing waits for as long as it is valid.
func TestRetries(t *testing.T) {
	o := newMailPractice(t)
	o.app.Settings().SMTP.Port = 1 // no server listens there
	o.queue(notifications.PasswordReset, map[string]string{"link": "https://vigil.example.org/?token=t"})
	var waits []time.Duration
	for range 20 {
		round := o.send()
		if round.DeadLettered == 1 {
			break
		}
		m := o.only()
		if round.Failed != 1 || m.GetString("status") != "pending" || m.GetString("error") != "the mail server could not be reached" {
			t.Fatalf("%+v: %v", round, m.GetString("error"))
		}
		wait := collections.ParseInstant(m.GetString("next_attempt_at")).Sub(o.clock())
		waits = append(waits, wait)
		o.wait(wait - time.Second)
		if early := o.send(); early != (notifications.MailCounts{}) {
			t.Errorf("retried too early: %+v", early)
		}
		o.wait(time.Second)
	}
	m := o.only()
	if len(waits) != 3 || waits[0] != 5*time.Minute || waits[1] != 10*time.Minute || waits[2] != 20*time.Minute || m.GetString("status") != "failed" || m.GetString("parameters") != "" {
		t.Errorf("waited %v, then %s", waits, m.GetString("status"))
	}
	rows, err := collections.AuditRows(o.app, "", "~", 10)
	if err != nil || len(rows) != 1 || rows[0].Outcome != string(audit.MinorFailure) {
		t.Errorf("recorded %v, %v", rows, err)
	}
}

func TestMailIsSentAfterOutage(t *testing.T) {
	o := newMailPractice(t)
	port := o.app.Settings().SMTP.Port
	o.app.Settings().SMTP.Port = 1 // no server listens there
	o.queue(notifications.PasswordChanged, nil)
	if round := o.send(); round.Failed != 1 {
		t.Fatalf("round %+v", round)
	}
	o.app.Settings().SMTP.Port = port
	o.wait(5 * time.Minute)
	if round := o.send(); round.Sent != 1 || o.only().GetString("error") != "" || o.only().GetInt("attempts") != 2 {
		t.Errorf("round %+v: %v", round, o.only().PublicExport())
	}
}

func TestWithoutMailServer(t *testing.T) {
	o := newMailPractice(t, func(options *notifications.MailerOptions) { options.Configured = false })
	o.queue(notifications.PasswordReset, map[string]string{"link": "https://vigil.example.org/?token=t"})
	o.send()
	if got := o.only().GetString("error"); got != "no mail server is configured" || len(o.catcher.Messages()) != 0 {
		t.Errorf("error %q", got)
	}
}

func TestUnresolvedMails(t *testing.T) {
	var lookups []string
	o := newMailPractice(t)
	o.mailer.Resolve = func(_ core.App, m *collections.Mail, _ time.Time) (bool, error) {
		lookups = append(lookups, m.Recipient())
		m.Set("user", o.user.Id)
		return m.Recipient() == "known@practice.test", m.SetParameters(map[string]string{"link": "https://vigil.example.org/?token=t"})
	}
	for _, address := range []string{"known@practice.test", "unknown@practice.test"} {
		err := o.app.RunInTransaction(func(tx core.App) error {
			return notifications.QueueUnresolvedMail(tx, notifications.PasswordReset, address, nil, o.clock())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if round := o.send(); round.Sent != 1 || round.Dropped != 1 || len(lookups) != 2 || o.only().GetString("user") != o.user.Id {
		t.Errorf("round %+v, lookups %v", round, lookups)
	}
	o.mailer.Resolve = func(core.App, *collections.Mail, time.Time) (bool, error) { return false, errors.New("no database") }
	if err := notifications.QueueUnresolvedMail(o.app, notifications.PasswordReset, "x@practice.test", nil, o.clock()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.mailer.SendDue(t.Context(), o.app.BaseApp); err == nil {
		t.Error("a failed lookup returns no error")
	}
}

// A server that accepts the connection but never replies neither blocks the stop of the service nor loses the mail.
func TestSilentServer(t *testing.T) {
	o := newMailPractice(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	o.app.Settings().SMTP.Port = listener.Addr().(*net.TCPAddr).Port
	o.queue(notifications.PasswordChanged, nil)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer func() { _ = conn.Close() }()
			stop()
			<-t.Context().Done()
		}
	}()
	if _, err := o.mailer.SendDue(ctx, o.app.BaseApp); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	if m := o.only(); m.GetString("status") != "pending" {
		t.Errorf("the mail is %s", m.GetString("status"))
	}
}

func TestWokenMailerSends(t *testing.T) {
	o := newMailPractice(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.mailer.Run(ctx, o.app.BaseApp) }()
	o.queue(notifications.PasswordChanged, nil)
	o.mailer.Wake()
	if _, err := o.catcher.WaitFor(t.Context(), func(sandbox.Message) bool { return true }); err != nil {
		t.Error(err)
	}
	stop()
	<-done
}

func TestNoticeIsStoredOnce(t *testing.T) {
	o := newMailPractice(t)
	for range 2 {
		err := notifications.Notify(o.app, o.user.Id, notifications.Notice{
			Channel: "alerts", Type: notifications.SystemHealth, Severity: "warning",
			Title: "Title", Body: "Body", DedupeKey: "once",
		}, o.clock())
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := o.app.FindAllRecords(collections.Notifications)
	if err != nil || len(entries) != 1 || entries[0].GetString("title") != "Title" || !entries[0].GetBool("in_app") {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// An unreadable mail is retried for as long as it is valid, without delaying others.
func TestUnreadableMailIsDeadLettered(t *testing.T) {
	for _, column := range []string{"recipient", "parameters"} {
		t.Run(column, func(t *testing.T) {
			o := newMailPractice(t)
			o.queue(notifications.PasswordReset, map[string]string{"link": "https://vigil.example.org/?token=t"})
			const damaged = "v1:lost:AAAAAAAAAAAAAAAA:AAAA"
			o.store(dbx.Params{column: damaged})
			if round := o.send(); round.Failed != 1 || o.only().GetString("status") != "pending" || o.only().GetString("error") != "a value of the mail cannot be opened" {
				t.Fatalf("at first: %+v, %v", round, o.only().PublicExport())
			}
			deadLettered := 0
			for range 12 { // more than an hour; the mail is valid for one
				o.wait(6 * time.Minute)
				deadLettered += o.send().DeadLettered
			}
			m := o.only()
			if deadLettered != 1 || m.GetString("status") != "failed" || len(o.catcher.Messages()) != 0 {
				t.Errorf("dead-lettered %d times, the mail is %s", deadLettered, m.GetString("status"))
			}
			var after, parameters string
			if err := o.app.DB().Select(column, "parameters").From(collections.Mails).Row(&after, &parameters); err != nil {
				t.Fatal(err)
			}
			if after != damaged || column == "recipient" && parameters != "" {
				t.Errorf("stored %q, parameters %q", after, parameters)
			}
			rows, err := collections.AuditRows(o.app, "", "~", 10)
			if err != nil || len(rows) != 1 || rows[0].Outcome != string(audit.MinorFailure) {
				t.Errorf("recorded %v, %v", rows, err)
			}
		})
	}
}

// A mail is sent if its key is restored in time.
func TestUnreadableMailIsSentAfterKeyReturns(t *testing.T) {
	o := newMailPractice(t)
	o.queue(notifications.PasswordReset, map[string]string{"link": "https://vigil.example.org/?token=t"})
	var whole string
	if err := o.app.DB().Select("recipient").From(collections.Mails).Row(&whole); err != nil {
		t.Fatal(err)
	}
	o.store(dbx.Params{"recipient": "v1:lost:AAAAAAAAAAAAAAAA:AAAA"})
	if round := o.send(); round.Failed != 1 {
		t.Errorf("unreadable: %+v", round)
	}
	o.store(dbx.Params{"recipient": whole})
	o.wait(5 * time.Minute)
	if round := o.send(); round.Sent != 1 || len(o.catcher.Messages()) != 1 {
		t.Errorf("once it can be read: %+v", round)
	}
}

// store overwrites columns of the single mail.
func (p *mailPractice) store(columns dbx.Params) {
	p.t.Helper()
	if _, err := p.app.DB().Update(collections.Mails, columns, nil).Execute(); err != nil {
		p.t.Fatal(err)
	}
}
