package notifications

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
)

// retryDelays are the waits after each attempt but the last. Source: docs/decisions/notifications.md, "Web Push delivery".
var retryDelays = []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// hostBackoff is how long no push is sent to a push service that did not answer.
const hostBackoff = 30 * time.Second

// sendDuePushes claims all due pushes and starts an attempt for each.
func (d *Dispatcher) sendDuePushes(ctx context.Context, app core.App, p *dispatchRound) error {
	for ctx.Err() == nil {
		now := d.Clock()
		claimed, err := collections.LeasePushes(app, now, now.Add(pushLease), claimSize)
		if err != nil || len(claimed) == 0 {
			return err
		}
		for _, push := range claimed {
			select {
			case d.slots <- struct{}{}:
			case <-ctx.Done():
				return nil // the lease expires and the push is sent later
			}
			p.inFlight.Go(func() {
				defer func() { <-d.slots }()
				d.deliver(ctx, app, push, p)
			})
		}
	}
	return nil
}

// pushResult is the result of one attempt.
type pushResult struct {
	collections.FinishedPush
	tokenID    string
	refusedBy  string // host of the push service that refused the push
	refusesKey bool   // for our key
}

func (d *Dispatcher) deliver(ctx context.Context, app core.App, push *collections.LeasedPush, p *dispatchRound) {
	end, ok := d.attempt(ctx, app, push, p)
	if !ok {
		return // the service stops or the database failed: the lease expires and the push is retried
	}
	if _, err := d.results.Commit(app, end); err != nil {
		d.Log.Error("push dispatcher could not record a result; it sends the push again after its lease", slog.String("push", push.ID), slog.Any("error", err))
		return
	}
	if d.OnAttempt != nil {
		d.OnAttempt(end.Status)
	}
	switch end.Status {
	case collections.PushSent:
		p.sent.Add(1)
	case collections.PushExpiredToken:
		p.expiredTokens.Add(1)
	case collections.PushPending:
		p.retried.Add(1)
	default:
		p.failed.Add(1)
	}
}

// attempt sends a push, unless its token or age forbids it. ok is false if there is no result to record.
func (d *Dispatcher) attempt(ctx context.Context, app core.App, push *collections.LeasedPush, p *dispatchRound) (end pushResult, ok bool) {
	now := d.Clock()
	m := optionsFor(push.Channel, push.Type, push.Severity)
	end = pushResult{FinishedPush: collections.FinishedPush{ID: push.ID, Body: push.Body, Status: collections.PushFailed}, tokenID: push.TokenID}
	expiresAt := collections.ParseInstant(push.CreatedAt).Add(m.ttl)
	token, err := push.Token()
	if err != nil && push.TokenActive && expiresAt.After(now) {
		d.Log.Error("push dispatcher could not read a token; it retries the push", slog.String("push", push.ID), slog.Any("error", err))
		return end, false // the key may be restored before the push expires
	}
	to, readable := decodeSubscription(token)
	switch {
	case push.PatientGone && types[push.Type].endsWithMonitoring:
		end.Status = collections.PushCancelled
		return end, true
	case !push.TokenActive:
		end.Status = collections.PushExpiredToken // the user signed out on the device in the meantime
		return end, true
	case !readable || !expiresAt.After(now):
		return end, true
	}
	if until := d.backoffs.retryAt(to.host(), now); !until.IsZero() {
		return end.postpone(until, expiresAt, true), true
	}
	clean, err := p.texts.sanitize(app, push.Body, push.Channel, push.Patient, false) // sanitized regardless of its origin
	if err != nil {
		d.Log.Error("push dispatcher could not sanitize a text; it retries the push", slog.String("push", push.ID), slog.Any("error", err))
		return end, false
	}
	end.Body = clean
	l := message{kind: push.TokenType, to: to, ttl: m.ttl, urgency: m.urgency, payload: payloadFor(push, clean)}
	if l.topic, err = topic(push.Channel, push.Type, push.Patient); err != nil {
		d.Log.Error("push dispatcher could not compute a topic; it retries the push", slog.String("push", push.ID), slog.Any("error", err))
		return end, false
	}
	got := d.Push.send(ctx, l, now)
	if generic := genericTexts[push.Channel][1]; got.status == http.StatusRequestEntityTooLarge && clean != generic {
		end.Body = generic
		l.payload = payloadFor(push, generic)
		got = d.Push.send(ctx, l, now)
	}
	if got.status == 0 && ctx.Err() != nil {
		return end, false
	}
	return d.classify(end, got, push.Attempts, to.host(), expiresAt), true
}

// classify turns the response of a push service into the result of the attempt.
func (d *Dispatcher) classify(end pushResult, got pushResponse, attempts int, host string, expiresAt time.Time) pushResult {
	now := d.Clock()
	end.StatusCode = got.status
	switch {
	case got.isAccepted():
		end.Status = collections.PushSent
	case got.isGone():
		end.Status = collections.PushExpiredToken
	case got.canRetry():
		if got.status == 0 {
			d.backoffs.set(host, now.Add(hostBackoff))
		}
		if attempts > len(retryDelays) {
			return end
		}
		wait := retryDelays[attempts-1]
		if got.retryAfter > 0 {
			wait = got.retryAfter
		}
		return end.postpone(now.Add(wait), expiresAt, false)
	case slices.Contains([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}, got.status):
		end.refusedBy, end.refusesKey = host, got.refusesKey
	}
	return end
}

// postpone schedules the next attempt, unless the push expires before it.
func (r pushResult) postpone(at, expiresAt time.Time, uncounted bool) pushResult {
	if at.Before(expiresAt) {
		r.Status, r.NextAttempt, r.Uncounted = collections.PushPending, at, uncounted
	}
	return r
}

func payloadFor(push *collections.LeasedPush, body string) []byte {
	title := push.Title
	if !slices.Contains(pushTitles, title) {
		title = genericTexts[push.Channel][0]
	}
	number := collections.Number(push.Notification)
	return payload{
		Title: title, Body: body, Channel: push.Channel, NotificationID: number, URL: "/?notification=" + strconv.FormatInt(number, 10),
	}.encode()
}

// storeResults stores the results of attempts in one transaction.
func (d *Dispatcher) storeResults(app core.App, endings []*async.GroupItem[pushResult, struct{}]) error {
	now := d.Clock()
	return async.JoinTx(app, func(tx core.App) error {
		for _, e := range endings {
			if err := e.In.store(tx, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r pushResult) store(tx core.App, now time.Time) error {
	if err := collections.FinishPush(tx, r.FinishedPush); err != nil {
		return err
	}
	switch {
	case r.Status == collections.PushSent:
		return collections.SetPushDelivered(tx, r.tokenID, now)
	case r.Status == collections.PushExpiredToken:
		return collections.RetirePushToken(tx, r.tokenID, reasonGone, now)
	case r.refusedBy != "":
		code := strconv.Itoa(r.StatusCode)
		body := "The push service " + r.refusedBy + " refused a push with " + code + "."
		if r.refusesKey {
			if err := collections.SetPushRefused(tx, r.tokenID); err != nil {
				return err
			}
			body += " Check the VAPID keys."
		}
		return Announce(tx, Announcement{
			Kind: ServiceTrouble, Severity: "warning", Body: body,
			Key: "push refused/" + r.refusedBy + "/" + code + "/" + now.UTC().Format(time.DateOnly),
		}, now)
	}
	return nil
}
