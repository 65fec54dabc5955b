package async

import (
	"context"
	"errors"
)

// ForEach calls do for each id until ctx ends, and returns how many calls returned true. A failure does not stop the others; all are
// returned together.
func ForEach(ctx context.Context, ids []string, do func(id string) (bool, error)) (done int, err error) {
	var failures []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return done, errors.Join(append(failures, err)...)
		}
		did, err := do(id)
		if err != nil {
			failures = append(failures, err)
		} else if did {
			done++
		}
	}
	return done, errors.Join(failures...)
}
