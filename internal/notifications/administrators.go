package notifications

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
)

// TellOfBrokenAudit tells every active administrator that the audit chain does not hold from a row on.
// Source: docs/decisions/security.md, "Hash chain".
func TellOfBrokenAudit(app core.App, firstInvalidID int64, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		return TellAdministrators(tx, Notice{
			Channel: "alerts", Type: SystemHealth, Severity: "critical", Title: "The audit trail does not verify",
			Body: fmt.Sprintf("The daily check found that the audit trail was changed at entry %d.", firstInvalidID),
		}, AuditBroken, now)
	})
}

// TellAdministrators puts a notice on the list of every active administrator and a mail into their mailboxes.
func TellAdministrators(tx core.App, notice Notice, mail Template, now time.Time) error {
	active := true
	admins, err := collections.UserList(tx, collections.UserFilter{Role: string(access.Admin), Active: &active})
	if err != nil {
		return err
	}
	for _, admin := range admins {
		if err := Notify(tx, admin.Id, notice, now); err != nil {
			return err
		}
		if err := Queue(tx, mail, admin, nil, now); err != nil {
			return err
		}
	}
	return nil
}
