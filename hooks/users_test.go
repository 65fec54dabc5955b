package hooks_test

import (
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A change by a superuser in the dashboard ends the user's sessions, as through the API.
func TestDashboardChangesEndSessions(t *testing.T) {
	n := newNative(t)
	bearer := n.bearer(n.superuser())
	for name, test := range map[string]struct {
		body map[string]any
		ends bool
	}{
		"password":      {map[string]any{"password": "Entirely-New-77", "passwordConfirm": "Entirely-New-77"}, true},
		"address":       {map[string]any{"email": "Elsewhere@Practice.Test"}, true},
		"role":          {map[string]any{"role": "provider"}, true},
		"inactive":      {map[string]any{"is_active": false}, true},
		"second factor": {map[string]any{"two_factor_enabled": false}, false}, // cannot be disabled here
		"phone":         {map[string]any{"phone": "555 0100"}, false},
	} {
		user := vigiltest.User(t, n.app, authz.Nurse, vigiltest.TwoFactor("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"))
		_, err := collections.CreateRefreshToken(n.app, collections.RefreshToken{
			UserID: user.Id, TokenHash: name, Family: name,
			FamilyStartedAt: vigiltest.Clock, IssuedAt: vigiltest.Clock, ExpiresAt: vigiltest.Clock,
		})
		if err != nil {
			t.Fatal(err)
		}
		if answer := n.call("PATCH /api/collections/users/records/"+user.Id, bearer, test.body); answer.Code != 200 {
			t.Fatalf("%s: %d %s", name, answer.Code, answer.Body)
		}
		if kept, err := collections.FindUser(n.app, user.Id); err != nil || !kept.TwoFactorEnabled() {
			t.Errorf("%s: the second factor is off, %v", name, err)
		}
		var state string
		if err := n.app.DB().NewQuery("SELECT state FROM refresh_tokens WHERE user = {:user}").Bind(dbx.Params{"user": user.Id}).Row(&state); err != nil ||
			(state == collections.RefreshRevoked) != test.ends {
			t.Errorf("%s: the sign-in is %s, %v", name, state, err)
		}
	}
	if _, err := collections.FindUserByEmail(n.app, "elsewhere@practice.test"); err != nil {
		t.Errorf("the address is not folded: %v", err)
	}
}
