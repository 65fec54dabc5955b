package async_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/async"
)

func TestWakeUpsAreMerged(t *testing.T) {
	s := async.NewSignal()
	for range 3 {
		s.Wake() // does not block
	}
	if len(s) != 1 {
		t.Errorf("%d wake-ups pending", len(s))
	}
	<-s
	s.Wake()
	if len(s) != 1 {
		t.Error("a wake-up after the receive is lost")
	}
}
