package hooks

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/audit"
)

// addressesOfSuperusers is the one of PocketBase's settings that is the dashboard's to change; all others come from the service's own, and
// are written anew at every start.
const addressesOfSuperusers = "superuserIPs"

const settingsRefused = "This setting comes from the service's own settings. Only the addresses of superusers change here."

// guardSettings keeps PocketBase's settings as the service's own demand while it runs, and puts on record who changed what is left, or tried
// to: names of sections only, since values may be secret. PocketBase's own backup, an open zip of everything, is refused whoever asks for it.
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
	if slices.ContainsFunc(sections, func(name string) bool { return name != addressesOfSuperusers }) {
		return h.refuseAttempt(e.RequestEvent, audit.SettingsRefused, "PocketBase", changes, settingsRefused)
	}
	if len(sections) == 0 {
		return e.Next()
	}
	// The entry comes first: a change that is not on record is not made.
	err = audit.Append(e.App, audit.Entry{
		Event: audit.SettingsUpdate, Actor: requester(e.RequestEvent), ResourceType: audit.ResourceSettings, ResourceID: "PocketBase", Changes: changes,
	}, h.Clock())
	if err != nil {
		return err
	}
	return e.Next()
}

// changedSections are the names of the sections that differ, secrets included.
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
	// The password of the mail server and the keys of buckets are left out of the JSON.
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
