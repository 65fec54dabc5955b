package auth

import (
	"encoding/base64"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Display units that a user may choose. Values are always stored and sent in the first unit.
var (
	WeightUnits      = []string{"kg", "lb"}
	TemperatureUnits = []string{"C", "F"}
)

// DisplayPatch changes the caller's display settings. Omitted fields stay as they are.
type DisplayPatch struct {
	WeightUnit      validate.String  `json:"weight_unit"`
	TemperatureUnit validate.String  `json:"temperature_unit"`
	SingleKeys      validate.Boolean `json:"single_keys"`
}

// columns returns the values of the fields that were sent, by column.
func (p DisplayPatch) columns() (map[string]string, error) {
	checks := validate.NewChecks()
	columns := map[string]string{}
	if p.WeightUnit.Sent() {
		columns[collections.UserWeightUnit] = checks.Text("weight_unit", p.WeightUnit, validate.Required(2).OneOf(WeightUnits...))
	}
	if p.TemperatureUnit.Sent() {
		columns[collections.UserTemperatureUnit] = checks.Text("temperature_unit", p.TemperatureUnit, validate.Required(1).OneOf(TemperatureUnits...))
	}
	if p.SingleKeys.Sent() {
		columns[collections.UserSingleKeys] = collections.KeysOn
		if on := checks.Boolean("single_keys", p.SingleKeys, true); on != nil && !*on {
			columns[collections.UserSingleKeys] = collections.KeysOff
		}
	}
	return columns, checks.Err()
}

// UpdateDisplay changes the caller's display settings.
func (e *Engine) UpdateDisplay(app core.App, caller Caller, patch DisplayPatch, from audit.Origin, now time.Time) (*collections.User, error) {
	columns, err := patch.columns()
	if err != nil {
		return nil, err
	}
	return e.changeExistingUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		return nil, applyColumns(tx, user, columns, caller.Actor(from), now)
	})
}

// DraftKey returns the key with which an app encrypts a user's drafts in browser storage that outlives a session. It is stable and returned to
// that user only. Source: docs/decisions/security.md, "Drafts and the session in a browser".
func (e *Engine) DraftKey(userID string) (string, error) {
	key, err := e.sealer.DeriveKey("drafts of a user")
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(phi.MAC(key, userID)), nil
}
