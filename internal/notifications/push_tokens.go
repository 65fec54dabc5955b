package notifications

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Reasons why a token is inactive.
const (
	reasonReplaced = "replaced"
	reasonMoved    = "moved"
	reasonRemoved  = "removed"
	reasonGone     = "gone"
	reasonExpired  = "expired"
	reasonUnused   = "unused"
)

// subscription is a browser's push endpoint with its keys. It refuses to print. Source: W3C Push API, PushSubscriptionJSON.
type subscription struct {
	Endpoint       string   `json:"endpoint"`
	ExpirationTime *float64 `json:"expirationTime"` // milliseconds since 1970
	Keys           struct {
		P256dh string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`
}

// Format prints a placeholder in place of the subscription.
func (subscription) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[subscription]") }

// LogValue reveals nothing.
func (subscription) LogValue() slog.Value { return slog.StringValue("[subscription]") }

func (s subscription) host() string {
	address, err := url.Parse(s.Endpoint)
	if err != nil {
		return ""
	}
	return strings.ToLower(address.Host)
}

func (s subscription) expires() time.Time {
	if s.ExpirationTime == nil || *s.ExpirationTime <= 0 || *s.ExpirationTime > 1e14 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*s.ExpirationTime)).UTC()
}

// RegisterBody is the body that registers the token of a device. The token of a browser may be an object instead of its JSON text.
type RegisterBody struct {
	Token      json.RawMessage `json:"token"`
	Type       validate.String `json:"type"`
	DeviceID   validate.String `json:"device_id"`
	Platform   validate.String `json:"platform"`
	AppVersion validate.String `json:"app_version"`
}

// registration is a validated body.
type registration struct {
	token, kind, device, platform, version string
	identity                               string // equal for two registrations of the same token
	expires                                time.Time
}

var tokenKind = regexp.MustCompile(`^[a-z0-9_-]{1,50}$`)

const maxTokenLength = 4096

func (b RegisterBody) read(p *Push) (registration, error) {
	checks := validate.NewChecks()
	r := registration{
		kind:     checks.Text("type", b.Type, validate.Required(50).Matching(tokenKind, "Must have only lower-case letters, digits, hyphens and underscores.")),
		device:   checks.Text("device_id", b.DeviceID, validate.Required(128).Identifier()),
		platform: checks.Text("platform", b.Platform, validate.Required(50)), version: checks.Text("app_version", b.AppVersion, validate.Optional(50)),
	}
	validate.NotNull(checks, "app_version", b.AppVersion)
	raw := bytes.TrimSpace(b.Token)
	if len(raw) > 0 && raw[0] == '{' && (r.kind == webPush || r.kind == webPushDev) {
		r.token = string(raw)
	} else {
		var field validate.String
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &field); err != nil {
				return r, fmt.Errorf("read token: %w", err)
			}
		}
		r.token = checks.Secret("token", field, maxTokenLength)
	}
	r.identity = r.token
	if r.token != "" && (r.kind == webPush || r.kind == webPushDev) {
		r.readSubscription(p, checks)
	}
	return r, checks.Err()
}

// readSubscription validates the subscription of a browser. Source: docs/decisions/notifications.md, "Token kinds"; RFC 8291, section 3.
func (r *registration) readSubscription(p *Push, checks *validate.Checks) {
	var s subscription
	if len(r.token) > maxTokenLength || json.Unmarshal([]byte(r.token), &s) != nil || s.Endpoint == "" {
		checks.Reject("token", "Must be a push subscription as JSON.")
		return
	}
	if _, err := p.checkEndpoint(r.kind, s.Endpoint); err != nil {
		checks.Reject("token", "The endpoint is not that of an allowed push service.")
	}
	key, err := decodeKey(s.Keys.P256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key) // checks that the point is on the curve
	}
	if err != nil || len(key) != 65 {
		checks.Reject("token", "keys.p256dh must be an uncompressed P-256 point in base64url.")
	}
	if auth, err := decodeKey(s.Keys.Auth); err != nil || len(auth) != 16 {
		checks.Reject("token", "keys.auth must be 16 bytes in base64url.")
	}
	canonical, err := json.Marshal(s)
	if err != nil {
		checks.Reject("token", "Must be a push subscription as JSON.")
	}
	r.token, r.identity, r.expires = string(canonical), s.Endpoint, s.expires()
}

func decodeKey(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// Register registers a device of a user for pushes and returns its token. first is false if the device already had a token; that one becomes
// inactive unless it is the same. A token in use by another user is moved, because the device has changed hands.
// The device is bound to the session it was registered in, "" if unknown; an ended session cannot register one. Source:
// docs/decisions/notifications.md, "Registration response" and "Push tokens and sessions".
func (p *Push) Register(app core.App, userID, session string, body RegisterBody, now time.Time) (token *collections.PushToken, first bool, err error) {
	r, err := body.read(p)
	if err != nil {
		return nil, false, err
	}
	hash, err := collections.BlindIndex("push token", r.identity)
	if err != nil {
		return nil, false, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if err := rejectEndedSession(tx, session); err != nil {
			return err
		}
		token, err = collections.FindActivePushToken(tx, userID, r.device)
		if err != nil && !collections.IsNotFound(err) {
			return err
		}
		if first = err != nil; !first && token.Hash() != hash {
			if err := collections.RetirePushToken(tx, token.Id, reasonReplaced, now); err != nil {
				return err
			}
			token = nil
		}
		if token == nil || first {
			if err := collections.RetirePushTokenHash(tx, hash, reasonMoved, now); err != nil {
				return err
			}
			if token, err = collections.NewPushToken(tx, userID, now); err != nil {
				return err
			}
		}
		r.fill(token, p, now)
		token.Set(collections.TokenHash, hash)
		token.Set(collections.TokenSession, session)
		return tx.Save(token)
	})
	return token, first, err
}

// rejectEndedSession rejects a registration by an ended session. An access token may outlive its session, and no later logout would deactivate the
// device.
func rejectEndedSession(tx core.App, session string) error {
	ended, err := collections.SessionEnded(tx, session)
	if err == nil && ended {
		err = fault.New(fault.Unauthenticated, "token_revoked", "The token was revoked. Sign in again.")
	}
	return err
}

func (r registration) fill(token *collections.PushToken, p *Push, now time.Time) {
	hint := []rune(r.token)
	if r.kind == webPush || r.kind == webPushDev {
		hint = []rune(r.identity) // ends with the endpoint, not with the keys
	}
	for field, value := range map[string]any{
		collections.TokenToken: r.token, collections.TokenType: r.kind, collections.TokenDeviceID: r.device, collections.TokenPlatform: r.platform,
		collections.TokenAppVersion: r.version, collections.TokenDeliverable: p.Delivers(r.kind),
		collections.TokenHint: string(hint[max(0, len(hint)-6):]), collections.TokenExpiresAt: collections.FormatInstant(r.expires),
		collections.ColumnUpdatedAt: collections.FormatInstant(now), collections.TokenReason: "",
	} {
		token.Set(field, value)
	}
}

// Unregister deactivates a token of the user.
func Unregister(app core.App, userID string, number int64, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		token, err := collections.FindOwnPushToken(tx, userID, collections.NumberID(number))
		if collections.IsNotFound(err) {
			return fault.Missing()
		}
		if err != nil {
			return err
		}
		return collections.RetirePushToken(tx, token.Id, reasonRemoved, now)
	})
}

// decodeSubscription decodes a stored token.
func decodeSubscription(token phi.Text) (s subscription, ok bool) {
	return s, json.Unmarshal([]byte(token.Reveal()), &s) == nil && s.Endpoint != ""
}

const (
	// maxUnused is how long a token stays active without an accepted push or a registration.
	maxUnused = 90 * 24 * time.Hour
	// testAfter is how long a token may go without a push before it is tested.
	testAfter = 7 * 24 * time.Hour
)

// TokenTest counts the results of a test of all tokens.
type TokenTest struct{ Expired, Unused, Tried, Gone int }

// TestTokens deactivates tokens that have expired, were unused for 90 days, or are no longer valid at the push service. It checks the latter with an
// empty push to each token that had none for a week; the push service does not store that push. Source: docs/decisions/notifications.md, "Weekly
// token test".
func (d *Dispatcher) TestTokens(ctx context.Context, app core.App) (done TokenTest, err error) {
	tokens, err := collections.ActivePushTokens(app, nil)
	if err != nil {
		return done, err
	}
	now := d.Clock()
	because := map[string]string{} // by token
	var untested []*collections.PushToken
	for _, token := range tokens {
		switch lastUsed := slices.MaxFunc([]time.Time{token.LastDeliveredAt(), token.UpdatedAt()}, time.Time.Compare); {
		case !token.ExpiresAt().IsZero() && !token.ExpiresAt().After(now):
			because[token.Id] = reasonExpired
			done.Expired++
		case lastUsed.Before(now.Add(-maxUnused)):
			because[token.Id] = reasonUnused
			done.Unused++
		case !token.LastDeliveredAt().After(now.Add(-testAfter)) && (token.Type() == webPush || token.Type() == webPushDev):
			untested = append(untested, token)
		}
	}
	var mu sync.Mutex
	var inFlight sync.WaitGroup
	for _, token := range untested {
		to, readable := decodeSubscription(token.Token())
		if !readable || ctx.Err() != nil {
			continue
		}
		done.Tried++
		d.slots <- struct{}{}
		inFlight.Go(func() {
			defer func() { <-d.slots }()
			if d.Push.send(ctx, message{kind: token.Type(), to: to, urgency: webpush.UrgencyLow}, now).isGone() {
				mu.Lock()
				defer mu.Unlock()
				because[token.Id] = reasonGone
				done.Gone++
			}
		})
	}
	inFlight.Wait()
	return done, app.RunInTransaction(func(tx core.App) error {
		for id, reason := range because {
			if err := collections.RetirePushToken(tx, id, reason, now); err != nil {
				return err
			}
		}
		return nil
	})
}
