package billing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func TestWrongSumsAreTold(t *testing.T) {
	app := vigiltest.NewApp(t)
	now := time.Date(2026, 2, 2, 8, 0, 0, 0, time.UTC)
	told := func() (kinds []string) {
		t.Helper()
		if err := app.DB().Select("kind").From(collections.Announcements).Column(&kinds); err != nil {
			t.Fatal(err)
		}
		return kinds
	}
	if _, _, err := billing.RecountAndTell(t.Context(), app, now); err != nil || told() != nil {
		t.Fatalf("nothing is wrong, yet %v was told: %v", told(), err)
	}
	_, err := app.NonconcurrentDB().NewQuery(`INSERT INTO billing_months (month, cpt_code, payer, provider, status, claims, amount_cents)
		VALUES ('2026-01', '99454', '', '', 'pending_review', 3, 100)`).Execute()
	if err != nil {
		t.Fatal(err)
	}
	if _, wrong, err := billing.RecountAndTell(t.Context(), app, now); err == nil || wrong != 1 {
		t.Errorf("%d months were wrong: %v", wrong, err)
	}
	if _, _, err := billing.RecountAndTell(t.Context(), app, now); err != nil {
		t.Errorf("the second count: %v", err)
	}
	if want := []string{string(notifications.ServiceTrouble)}; !slices.Equal(told(), want) {
		t.Errorf("told %v", told())
	}
}
