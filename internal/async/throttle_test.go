package async_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/async"
)

func TestThrottleRestsAsLongAsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		for name, test := range map[string]struct {
			pace *async.Throttle
			want time.Duration
		}{
			"always": {async.ThrottleAlways(), time.Second}, "while busy": {async.ThrottleWhile(func() bool { return busy }), time.Second},
			"not busy": {async.ThrottleWhile(func() bool { return !busy }), 0}, "never": {async.ThrottleWhile(nil), 0},
		} {
			_ = test.pace.Rest(t.Context()) // starts the measurement: earlier cases do not count as work
			began := time.Now()
			time.Sleep(time.Second)
			if err := test.pace.Rest(t.Context()); err != nil || time.Since(began) != time.Second+test.want {
				t.Errorf("%s: work and rest took %s (%v)", name, time.Since(began), err)
			}
			began = time.Now()
			if err := test.pace.Rest(t.Context()); err != nil || time.Since(began) != 0 {
				t.Errorf("%s: rested %s after no work (%v)", name, time.Since(began), err)
			}
		}
	})
}

func TestThrottleEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := async.ThrottleAlways()
		source := p.Reader(ctx, strings.NewReader("some bytes"))
		if read, err := io.ReadAll(io.LimitReader(source, 4)); string(read) != "some" || err != nil {
			t.Errorf("%q (%v)", read, err)
		}
		time.Sleep(50 * time.Second)
		if _, err := source.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
