package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vigilhealth/vigil/internal/async"
)

// Items of one caller are stored in order, each with its result.
func TestSubmitAll(t *testing.T) {
	l := &ledger{fail: func(n int) error {
		if n == 3 {
			return errFault
		}
		return nil
	}}
	group := newGroup(l, func(o *async.GroupOptions[int, int]) { o.MaxBatch = 4 })
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { group.Run(ctx, nil) })
	answers := group.SubmitAll(t.Context(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	for i, a := range answers {
		if bad := i == 3; bad != errors.Is(a.Err, errFault) || !bad && a.Out != 2*i {
			t.Errorf("%d: %+v", i, a)
		}
	}
	var stored []int
	for _, some := range l.groups {
		stored = append(stored, some...)
	}
	for i := 1; i < len(stored); i++ {
		if stored[i] < stored[i-1] {
			t.Errorf("stored in the order %v", stored)
		}
	}
	cancel()
	run.Wait()
	for _, a := range group.SubmitAll(t.Context(), []int{1, 2}) {
		if !errors.Is(a.Err, async.ErrGroupStopped) {
			t.Errorf("after the stop: %+v", a)
		}
	}
}

// Items beyond the queue's capacity are not submitted, and a canceled caller stops waiting.
func TestSubmitAllWithFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := newGroup(&ledger{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var answers []async.Result[int]
		go func() { answers = group.SubmitAll(ctx, make([]int, 5000)) }()
		synctest.Wait()
		if group.Waiting() != 4096 {
			t.Errorf("%d items wait", group.Waiting())
		}
		cancel()
		synctest.Wait()
		full, left := 0, 0
		for _, a := range answers {
			switch {
			case errors.Is(a.Err, async.ErrGroupFull):
				full++
			case errors.Is(a.Err, context.Canceled):
				left++
			}
		}
		if full != 5000-4096 || left != 4096 {
			t.Errorf("%d did not fit, %d were canceled", full, left)
		}
	})
}
