package async_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/async"
)

func TestCallsBeforeALookAreOne(t *testing.T) {
	s := async.NewSignal()
	for range 3 {
		s.Wake() // blocks nobody
	}
	if len(s) != 1 {
		t.Errorf("%d calls wait", len(s))
	}
	<-s
	s.Wake()
	if len(s) != 1 {
		t.Error("a call after the look is lost")
	}
}
