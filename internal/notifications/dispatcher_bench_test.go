package notifications_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// BenchmarkThousandRecipients notifies a thousand users of one event, with a push service that answers at once, while another goroutine writes. It
// also reports the longest wait of these writes.
func BenchmarkThousandRecipients(b *testing.B) {
	const people = 1000
	w := newPractice(b)
	phone := newBrowser(b)
	for i := range people {
		admin := vigiltest.User(b, w.app, authz.Admin)
		w.register(admin, "web_push_dev", "phone", phone.subscribe(fmt.Sprint(w.service.URL, "/", i)))
	}
	event := 0
	var longest time.Duration
	for b.Loop() {
		event++
		w.announce(notifications.Announcement{Kind: notifications.ServiceTrouble, Severity: "warning", Body: "x", Key: fmt.Sprint(event)})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if sent := w.send(); sent.Sent != people {
				b.Errorf("%+v", sent)
			}
		}()
		for writing := true; writing; {
			select {
			case <-done:
				writing = false
			case <-time.After(5 * time.Millisecond):
				began := time.Now()
				err := w.app.RunInTransaction(func(tx core.App) error {
					_, err := collections.NextValue(tx, "bench")
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(began))
			}
		}
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest-write")
}
