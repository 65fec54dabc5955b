package notifications

import (
	"context"

	"github.com/pocketbase/pocketbase/core"
)

// RemindOfEach reminds of each id in a transaction of its own; told is of how many.
func RemindOfEach(ctx context.Context, app core.App, ids []string, remind func(tx core.App, id string) error) (told int, err error) {
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return told, err
		}
		if err := app.RunInTransaction(func(tx core.App) error { return remind(tx, id) }); err != nil {
			return told, err
		}
		told++
	}
	return told, nil
}
