package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/hooks/schemadrift"
	"github.com/vigilhealth/vigil/internal/audit"
)

// superuserAddresses is the only PocketBase setting that can be changed in the dashboard. All others come from Vigil's settings and are
// written again at every start.
const superuserAddresses = "superuserIPs"

const settingsRefused = "This setting comes from the service's own settings. Only the addresses of superusers change here."

// guardSettings rejects changes of PocketBase's settings. Changes and attempts are audited by
// section name only, because values may be secret. PocketBase's unencrypted backup is rejected too.
func guardSettings(app core.App, h *hooks) {
	app.OnSettingsUpdateRequest().BindFunc(h.guardSettings)
	app.OnBackupCreate().BindFunc(func(*core.BackupEvent) error { return errBackup })
	app.OnBackupRestore().BindFunc(func(*core.BackupEvent) error { return errBackup })
}

var errBackup = router.NewForbiddenError("PocketBase's own backup is closed: see vigil backup.", nil)

func (h *hooks) guardSettings(e *core.SettingsUpdateRequestEvent) error {
	sections, err := changedSections(e.OldSettings, e.NewSettings)
	if err != nil {
		return err
	}
	changes := audit.Changes{"sections": {New: sections}}
	if slices.ContainsFunc(sections, func(name string) bool { return name != superuserAddresses }) {
		return h.auditAndReject(e.RequestEvent, audit.SettingsRefused, "PocketBase", changes, settingsRefused)
	}
	if len(sections) == 0 {
		return e.Next()
	}
	// Audit first: without an audit entry the change is not made.
	err = audit.Append(e.App, audit.Entry{
		Event: audit.SettingsUpdate, Actor: requester(e.RequestEvent), ResourceType: audit.ResourceSettings, ResourceID: "PocketBase", Changes: changes,
	}, h.Clock())
	return continueUnless(err, e)
}

// changedSections returns the names of the sections that differ, including their secrets.
func changedSections(before, after *core.Settings) ([]string, error) {
	was, err := sections(before)
	if err != nil {
		return nil, err
	}
	is, err := sections(after)
	if err != nil {
		return nil, err
	}
	changed := []string{}
	for name := range is {
		if !bytes.Equal(was[name], is[name]) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}

func sections(s *core.Settings) (map[string]json.RawMessage, error) {
	// The JSON omits the mail server's password and the buckets' keys.
	secrets := []string{s.SMTP.Password, s.S3.Secret, s.Backups.S3.Secret}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for i, name := range []string{"smtp", "s3", "backups"} {
		if all[name], err = json.Marshal([]any{all[name], secrets[i]}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// schemaRefused is the message for a refused schema change.
const schemaRefused = "Collections, their fields and their rules belong to the program and change with its version only."

// guardSchema rejects and audits every schema change through PocketBase's API: one non-nil rule
// would publish patients until the next check. Source: docs/decisions/security.md, "Schema drift".
func guardSchema(app core.App, h *hooks) {
	app.OnCollectionCreateRequest().BindFunc(h.refuseCollection)
	app.OnCollectionUpdateRequest().BindFunc(h.refuseCollection)
	app.OnCollectionDeleteRequest().BindFunc(h.refuseCollection)
	app.OnCollectionsImportRequest().BindFunc(func(e *core.CollectionsImportRequestEvent) error {
		return h.auditAndReject(e.RequestEvent, audit.RulesRefused, "", audit.Changes{"import": {New: len(e.CollectionsData)}}, schemaRefused)
	})
}

// refuseCollection audits the requested changes of the collection; for a deletion, its name.
func (h *hooks) refuseCollection(e *core.CollectionRequestEvent) error {
	changes := audit.Changes{}
	if e.Request.Method != "DELETE" {
		different, err := schemadrift.RequestedChanges(e.App, e.Collection)
		if err != nil {
			return err
		}
		changes = schemadrift.Changes(different)
	}
	return h.auditAndReject(e.RequestEvent, audit.RulesRefused, cmp.Or(storedName(e.App, e.Collection), e.Collection.Name), changes, schemaRefused)
}

// storedName returns the collection's name in the database, which may differ from the request's.
func storedName(app core.App, c *core.Collection) string {
	if found, err := app.FindCachedCollectionByNameOrId(c.Id); err == nil {
		return found.Name
	}
	return ""
}

// auditAndReject audits an attempt and refuses it.
func (h *hooks) auditAndReject(e *core.RequestEvent, event audit.Event, collection string, changes audit.Changes, sentence string) error {
	resource := audit.ResourceCollection
	if event == audit.SettingsRefused {
		resource = audit.ResourceSettings
	}
	recorded := audit.Append(e.App, audit.Entry{
		Event: event, Outcome: audit.MinorFailure, Actor: requester(e), ResourceType: resource, ResourceID: collection, Changes: changes,
	}, h.Clock())
	return errors.Join(e.ForbiddenError(sentence, nil), recorded)
}

// requester returns the requesting superuser.
func requester(e *core.RequestEvent) audit.Actor {
	if e.Auth == nil {
		return audit.Anonymous(originOf(e))
	}
	return audit.Superuser(e.Auth.Id, e.Auth.Email(), originOf(e))
}
