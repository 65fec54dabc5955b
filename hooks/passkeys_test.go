package hooks_test

import (
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A superuser cannot add, change or delete a passkey: that would open another user's account.
func TestDashboardCannotChangePasskeys(t *testing.T) {
	d := newDashboard(t)
	nurse, other := vigiltest.User(t, d.app, authz.Nurse), vigiltest.User(t, d.app, authz.Nurse)
	passkey, err := collections.CreatePasskey(d.app, collections.NewPasskey{UserID: nurse.Id, Name: "Key", CredentialID: "aWQ", PublicKey: "a2V5"}, vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	d.refused("POST", collections.Passkeys, "", "", object{"user": nurse.Id, "name": "Mine", "credential_id": "bXk", "public_key": "bXk"})
	for column, value := range map[string]any{"user": other.Id, "public_key": "bXk", "credential_id": "bXk", "sign_count": 0, "name": "Mine"} {
		d.refused("PATCH", collections.Passkeys, passkey.Id, "", object{column: value})
	}
	d.refused("DELETE", collections.Passkeys, passkey.Id, "", nil)
	if after := vigiltest.RowCounts(t, d.app); after["passkeys"] != 1 {
		t.Errorf("%d passkeys", after["passkeys"])
	}
}
