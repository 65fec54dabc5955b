package billing

import (
	"fmt"
	"runtime/debug"
)

// planners are how many chunks are planned at once, while one is stored.
const planners = 2

// ahead plans chunks of patients while earlier ones are stored, which is done one after the other in their order, by the caller's goroutine. next is
// asked until it has none. It ends with the first error, once nothing is under way any more.
func ahead[T any](next func() ([]string, error), plan func(ids []string) (T, error), store func(T) error) error {
	type outcome struct {
		value T
		err   error
	}
	var coming []chan outcome
	defer func() {
		for _, c := range coming {
			<-c
		}
	}()
	begin := func(ids []string) {
		done := make(chan outcome, 1)
		coming = append(coming, done)
		go func() {
			var o outcome
			defer func() {
				if v := recover(); v != nil { // in a goroutine of its own it would end the service
					o.err = fmt.Errorf("planning panicked (%T): %s", v, debug.Stack()) // the text of v could quote a value
				}
				done <- o
			}()
			o.value, o.err = plan(ids)
		}()
	}
	for more := true; more || len(coming) > 0; {
		for more && len(coming) < planners {
			ids, err := next()
			if err != nil {
				return err
			}
			if more = len(ids) > 0; more {
				begin(ids)
			}
		}
		if len(coming) == 0 {
			return nil
		}
		o := <-coming[0]
		coming = coming[1:]
		if o.err != nil {
			return o.err
		}
		if err := store(o.value); err != nil {
			return err
		}
	}
	return nil
}
