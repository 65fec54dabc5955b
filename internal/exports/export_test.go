package exports

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// MakeAll makes what waits, and ends.
func (e *Engine) MakeAll(ctx context.Context, app core.App) (failures error) {
	for {
		made, err := e.makeNext(ctx, app)
		failures = errors.Join(failures, err)
		if !made {
			return failures
		}
	}
}
