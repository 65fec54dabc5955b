package jobs

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A changed audit trail notifies every active administrator in the app and by mail; a valid one notifies none.
func TestBrokenAuditNotifiesAdministrators(t *testing.T) {
	app := vigiltest.NewApp(t)
	vigiltest.User(t, app, authz.Admin)
	vigiltest.User(t, app, authz.Admin)
	vigiltest.User(t, app, authz.Admin, vigiltest.Inactive())
	vigiltest.User(t, app, authz.Nurse)
	e := Engines{Clock: clockwork.NewFakeClockAt(vigiltest.Clock), AuditHead: filepath.Join(t.TempDir(), "head")}
	for range 3 {
		if err := audit.Append(app, audit.Entry{Event: audit.Login, Actor: audit.System()}, vigiltest.Clock); err != nil {
			t.Fatal(err)
		}
	}
	before := vigiltest.RowCounts(t, app)
	if done, err := verifyAudit(e, t.Context(), app); err != nil || done["checked"] != 3 {
		t.Errorf("%v (%v)", done, err)
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
		t.Errorf("a valid trail adds %v", added)
	}
	for _, statement := range []string{"DROP TRIGGER audit_log_no_update", "UPDATE audit_log SET outcome = '4' WHERE id = '000000000000002'"} {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := verifyAudit(e, t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if added := vigiltest.RowsAdded(t, app, before); added["notifications"] != 2 || added["mails"] != 2 {
		t.Errorf("a broken trail adds %v", added)
	}
	notice, err := app.FindFirstRecordByData(collections.Notifications, "severity", "critical")
	if err != nil || !strings.Contains(notice.GetString("body"), "entry 2") {
		t.Errorf("notice %v", err)
	}
}

func TestMailSweepSendsQueuedMail(t *testing.T) {
	app := vigiltest.NewApp(t)
	user := vigiltest.User(t, app, authz.Nurse)
	if err := notifications.QueueMail(app, notifications.PasswordChanged, user, nil, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	app.Settings().SMTP.Enabled = true // the test app sends no mail
	mailer := notifications.NewMailer(notifications.MailerOptions{
		Configured: true, Clock: func() time.Time { return vigiltest.Clock },
		Log: slog.New(slog.DiscardHandler), Resolve: func(core.App, *collections.Mail, time.Time) (bool, error) { return false, nil },
	})
	done, err := sendMails(Engines{Mailer: mailer}, t.Context(), app)
	if err != nil || done["sent"] != 1 || app.TestMailer.TotalSend() != 1 {
		t.Errorf("%v, %d sent (%v)", done, app.TestMailer.TotalSend(), err)
	}
}
