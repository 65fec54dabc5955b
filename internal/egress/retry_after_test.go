package egress_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, time.March, 3, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]struct {
		wait  time.Duration
		given bool
	}{
		"":                              {0, false},
		"soon":                          {0, false},
		"-5":                            {0, false},
		"1.5":                           {0, false},
		"0":                             {0, true},
		" 120 ":                         {2 * time.Minute, true},
		"86400":                         {24 * time.Hour, true},
		"86401":                         {24 * time.Hour, true},
		"99999999999999999999999999":    {24 * time.Hour, true},
		"Tue, 03 Mar 2026 12:00:30 GMT": {30 * time.Second, true},
		"Tue, 03 Mar 2026 11:00:00 GMT": {0, true},
		"Fri, 03 Mar 2028 12:00:00 GMT": {24 * time.Hour, true},
	} {
		header := http.Header{"Retry-After": {text}}
		if text == "" {
			header = http.Header{}
		}
		if wait, given := egress.RetryAfter(header, now); wait != want.wait || given != want.given {
			t.Errorf("%q: %s, %t", text, wait, given)
		}
	}
}
