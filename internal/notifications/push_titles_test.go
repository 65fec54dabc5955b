package notifications_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// No title that a push may have contains a number or anything that the sanitizer would remove; each is short enough for a lock screen.
func TestPushTitlesContainNoPHI(t *testing.T) {
	if len(notifications.PushTitles) < 50 {
		t.Fatalf("%d titles", len(notifications.PushTitles))
	}
	for _, title := range notifications.PushTitles {
		if phi.Sanitize(title, "removed") != title || strings.ContainsAny(title, "0123456789") || len(title) > 60 {
			t.Errorf("%q", title)
		}
	}
}
