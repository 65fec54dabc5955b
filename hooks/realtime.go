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

// writeTimeout bounds one write to a stream.
const writeTimeout = 10 * time.Second

// connectTopic is the first event of each PocketBase stream. PocketBase's SDK subscribes to it to detect a new connection.
const connectTopic = "PB_CONNECT"

// guardRealtime refuses every topic except Vigil's, because PocketBase allows subscriptions to any topic. Superusers keep all topics.
func guardRealtime(app core.App, h *hooks) {
	app.OnRealtimeConnectRequest().BindFunc(h.openStream)
	app.OnRealtimeSubscribeRequest().BindFunc(h.subscribe)
	app.OnRealtimeMessageSend().BindFunc(writeMessage)
}

// openStream creates a stream without a subscription. Until it has one, its connection may be closed in favor of others.
func (h *hooks) openStream(e *core.RealtimeConnectRequestEvent) error {
	opened, err := h.countRealtime(e.RequestEvent, addressOf(e.RequestEvent))
	if err != nil {
		return err
	}
	e.Client.Set(openingKey, opened)
	if e.Request.ProtoMajor == 1 { // closes the connection when the stream ends
		e.Response.Header().Set("Connection", "close")
	}
	e.Client = realtime.NewStream(e.Client, ratelimit.AwaitClient(e.Request.Context()))
	return e.Next()
}

// subscribe allows staff who may read the triage list to subscribe to its topic, and portal accounts to theirs; one of them per stream. The
// subscription is audited as a read of patient data.
func (h *hooks) subscribe(e *core.RealtimeSubscribeRequestEvent) error {
	if e.HasSuperuserAuth() {
		return h.subscribeSuperuser(e)
	}
	now := h.Clock()
	if _, err := h.countRealtime(e.RequestEvent, h.subscriber(e.RequestEvent, now)); err != nil {
		return err
	}
	if len(e.Subscriptions) == 0 {
		return e.Next()
	}
	topic := realtime.Topic
	if slices.Contains(e.Subscriptions, realtime.PortalTopic) {
		topic = realtime.PortalTopic
	}
	foreign := slices.ContainsFunc(e.Subscriptions, func(other string) bool { return other != topic && other != connectTopic })
	stream, ours := e.Client.(*realtime.Stream)
	if foreign || !ours || h.Realtime == nil {
		return e.ForbiddenError("", nil)
	}
	caller, err := h.Realtime.Subscribe(e.App, stream, topic, accessToken(e.Request), now)
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
		ResourceType: audit.ResourceTopic, ResourceID: topic,
	}, now)
	h.refundOpening(e)
	return continueUnless(err, e)
}

// subscribeSuperuser allows a superuser all topics until the token expires; the dashboard then reconnects with its next token.
func (h *hooks) subscribeSuperuser(e *core.RealtimeSubscribeRequestEvent) error {
	until, err := h.Auth.SuperuserTokenExpiry(e.App, accessToken(e.Request), h.Clock())
	if err != nil {
		return e.UnauthorizedError("", nil)
	}
	if stream, ours := e.Client.(*realtime.Stream); ours {
		stream.EndsIn(until.Sub(h.Clock()))
	}
	return e.Next()
}

// openingKey stores on the stream the counted request of its opening, until it is subscribed.
const openingKey = "opened"

// countedRequest is a request counted by a rate limit.
type countedRequest struct {
	key string
	at  time.Time
}

// countRealtime counts the opening of a stream by address, or a subscription by user. Source: docs/decisions/limits.md, "Which limit applies"
// and "Streams behind one address".
func (h *hooks) countRealtime(e *core.RequestEvent, key string) (countedRequest, error) {
	request := countedRequest{key, h.Clock()}
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

// addressOf returns the rate-limit key of a client address.
func addressOf(e *core.RequestEvent) string {
	address := e.RealIP()
	if addr, err := netip.ParseAddr(address); err == nil {
		address = addr.Unmap().String()
	}
	return ratelimit.AddressKey(address)
}

// subscriber returns the rate-limit key of a subscription: the user, or the address without a valid token.
func (h *hooks) subscriber(e *core.RequestEvent, now time.Time) string {
	if h.Auth != nil {
		if caller, err := h.Auth.AuthenticatePassively(e.App, accessToken(e.Request), now); err == nil {
			return caller.RecordID
		}
	}
	return addressOf(e)
}

// refundOpening removes the opening of a stream from its address's count once the user is identified.
func (h *hooks) refundOpening(e *core.RealtimeSubscribeRequestEvent) {
	if opening, charged := e.Client.Get(openingKey).(countedRequest); charged && h.Limits != nil {
		e.Client.Unset(openingKey)
		h.Limits.Refund(ratelimit.Realtime, opening.key, opening.at)
	}
}

// accessToken returns the access token of a request. PocketBase's SDK sends it without "Bearer".
func accessToken(r *http.Request) string {
	token := r.Header.Get("Authorization")
	if len(token) > 7 && strings.EqualFold(token[:7], "Bearer ") {
		token = token[7:]
	}
	return strings.TrimSpace(token)
}

// writeMessage writes the publisher's messages unchanged: they are already several events in stream format. A connection that accepts nothing
// within writeTimeout is closed.
func writeMessage(e *core.RealtimeMessageEvent) error {
	control := http.NewResponseController(e.Response)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // test connections may not support deadlines
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	if e.Message.Name != realtime.Topic && e.Message.Name != realtime.PortalTopic {
		return e.Next()
	}
	if _, err := e.Response.Write(e.Message.Data); err != nil {
		return err
	}
	return e.Flush()
}
