package hooks

import (
	"errors"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/realtime"
)

// stalled is how long one write to a stream may take.
const stalled = 10 * time.Second

// connected is the name of the event with which PocketBase opens each stream; its SDK subscribes to it to learn of a new connection.
const connected = "PB_CONNECT"

// guardRealtime refuses every topic but ours: PocketBase lets anyone subscribe to a topic of its own making. The dashboard's
// superusers keep all of theirs.
func guardRealtime(app core.App, h *hooks) {
	app.OnRealtimeConnectRequest().BindFunc(h.openStream)
	app.OnRealtimeSubscribeRequest().BindFunc(h.subscribe)
	app.OnRealtimeMessageSend().BindFunc(writeMessage)
}

// openStream gives the connection a stream that nobody waits for. Until something is subscribed, its connection gives way to others.
func (h *hooks) openStream(e *core.RealtimeConnectRequestEvent) error {
	opened, err := h.takeRealtime(e.RequestEvent, addressOf(e.RequestEvent))
	if err != nil {
		return err
	}
	e.Client.Set(openedAt, opened)
	if e.Request.ProtoMajor == 1 { // a stream that ends frees its connection
		e.Response.Header().Set("Connection", "close")
	}
	e.Client = realtime.NewStream(e.Client, ratelimit.Await(e.Request.Context()))
	return e.Next()
}

// subscribe lets those who may read the triage list hear its topic. The subscription is a read of patients' data, and audited.
func (h *hooks) subscribe(e *core.RealtimeSubscribeRequestEvent) error {
	if e.HasSuperuserAuth() {
		return h.subscribeSuperuser(e)
	}
	now := h.Clock()
	if _, err := h.takeRealtime(e.RequestEvent, h.subscriber(e.RequestEvent, now)); err != nil {
		return err
	}
	if len(e.Subscriptions) == 0 {
		return e.Next()
	}
	foreign := slices.ContainsFunc(e.Subscriptions, func(topic string) bool { return topic != realtime.Topic && topic != connected })
	stream, ours := e.Client.(*realtime.Stream)
	if foreign || !ours || h.Live == nil {
		return e.ForbiddenError("", nil)
	}
	caller, err := h.Live.Subscribe(e.App, stream, accessToken(e.Request), now)
	switch refused, ok := errors.AsType[*fault.Error](err); {
	case ok && refused.Kind == fault.Unauthenticated:
		return e.UnauthorizedError("", nil)
	case ok:
		return e.ForbiddenError("", nil)
	case err != nil:
		return err
	}
	err = audit.Append(e.App, audit.Entry{
		Event: audit.PatientRead, Actor: caller.Actor(originOf(e.RequestEvent)),
		ResourceType: audit.ResourceTopic, ResourceID: realtime.Topic,
	}, now)
	h.giveBackOpening(e)
	return unless(err, e)
}

// subscribeSuperuser lets a superuser hear every topic, for as long as the token lasts; the dashboard connects again with its next one.
func (h *hooks) subscribeSuperuser(e *core.RealtimeSubscribeRequestEvent) error {
	until, err := h.Auth.SuperuserUntil(e.App, accessToken(e.Request), h.Clock())
	if err != nil {
		return e.UnauthorizedError("", nil)
	}
	if stream, ours := e.Client.(*realtime.Stream); ours {
		stream.EndsIn(until.Sub(h.Clock()))
	}
	return e.Next()
}

// openedAt is where a stream keeps when its opening was counted, and by which key, until somebody has subscribed it.
const openedAt = "opened"

// counted is a request that a limit was charged with.
type counted struct {
	key string
	at  time.Time
}

// takeRealtime counts opening a stream, by address, or subscribing it. Source: docs/decisions/limits.md, "Which limit applies" and "Streams
// behind one address".
func (h *hooks) takeRealtime(e *core.RequestEvent, key string) (counted, error) {
	request := counted{key, h.Clock()}
	if h.Limits == nil {
		return request, nil
	}
	taken := h.Limits.Take(ratelimit.Realtime, key, request.at)
	if taken.Allowed {
		return request, nil
	}
	e.Response.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(taken.Reset.Seconds())))))
	return request, e.TooManyRequestsError("", nil)
}

// addressOf is the key of a client address.
func addressOf(e *core.RequestEvent) string {
	address := e.RealIP()
	if addr, err := netip.ParseAddr(address); err == nil {
		address = addr.Unmap().String()
	}
	return ratelimit.AddressKey(address)
}

// subscriber is the key of who subscribes: the user, or the address of somebody without a good token.
func (h *hooks) subscriber(e *core.RequestEvent, now time.Time) string {
	if h.Auth != nil {
		if caller, err := h.Auth.Check(e.App, accessToken(e.Request), now); err == nil {
			return caller.RecordID
		}
	}
	return addressOf(e)
}

// giveBackOpening takes the opening of a stream off its address once it is known whose the stream is.
func (h *hooks) giveBackOpening(e *core.RealtimeSubscribeRequestEvent) {
	if opening, charged := e.Client.Get(openedAt).(counted); charged && h.Limits != nil {
		e.Client.Unset(openedAt)
		h.Limits.GiveBack(ratelimit.Realtime, opening.key, opening.at)
	}
}

// accessToken is the access token of a request; PocketBase's SDK sends it bare.
func accessToken(r *http.Request) string {
	token := r.Header.Get("Authorization")
	if len(token) > 7 && strings.EqualFold(token[:7], "Bearer ") {
		token = token[7:]
	}
	return strings.TrimSpace(token)
}

// writeMessage writes what the publisher sends as it is: several events, in the form of a stream already. A connection that takes
// nothing for too long is given up.
func writeMessage(e *core.RealtimeMessageEvent) error {
	control := http.NewResponseController(e.Response)
	_ = control.SetWriteDeadline(time.Now().Add(stalled)) // not every test's connection has one
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	if e.Message.Name != realtime.Topic {
		return e.Next()
	}
	if _, err := e.Response.Write(e.Message.Data); err != nil {
		return err
	}
	return e.Flush()
}
