package notifications

import (
	"context"
	"sync"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

const (
	// unusedFor is how long a token may go without a push accepted or a registration.
	unusedFor = 90 * 24 * time.Hour
	// untestedFor is how long a token may go without a push before it is tried.
	untestedFor = 7 * 24 * time.Hour
)

// TokenTest is what a test of all tokens did.
type TokenTest struct{ Expired, Unused, Tried, Gone int }

// TestTokens makes tokens inactive that have expired, that nobody has used for 90 days, or that the push service does not know any more. To
// find that out it sends an empty push that nobody keeps to those that had none for a week. Source: docs/decisions/notifications.md, "Weekly token test".
func (d *Dispatcher) TestTokens(ctx context.Context, app core.App) (done TokenTest, err error) {
	tokens, err := collections.ActivePushTokens(app, nil)
	if err != nil {
		return done, err
	}
	now := d.Clock()
	because := map[string]string{} // by token
	var untested []*collections.PushToken
	for _, token := range tokens {
		switch heard := latest(token.LastDeliveredAt(), token.UpdatedAt()); {
		case !token.ExpiresAt().IsZero() && !token.ExpiresAt().After(now):
			because[token.Id] = becauseExpired
			done.Expired++
		case heard.Before(now.Add(-unusedFor)):
			because[token.Id] = becauseUnused
			done.Unused++
		case !token.LastDeliveredAt().After(now.Add(-untestedFor)) && (token.Type() == webPush || token.Type() == webPushDev):
			untested = append(untested, token)
		}
	}
	var mu sync.Mutex
	var under sync.WaitGroup
	for _, token := range untested {
		to, readable := open(token.Token())
		if !readable || ctx.Err() != nil {
			continue
		}
		done.Tried++
		d.slots <- struct{}{}
		under.Go(func() {
			defer func() { <-d.slots }()
			if d.Push.send(ctx, message{kind: token.Type(), to: to, urgency: webpush.UrgencyLow}, now).gone() {
				mu.Lock()
				defer mu.Unlock()
				because[token.Id] = becauseGone
				done.Gone++
			}
		})
	}
	under.Wait()
	return done, app.RunInTransaction(func(tx core.App) error {
		for id, reason := range because {
			if err := collections.RetirePushToken(tx, id, reason, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
