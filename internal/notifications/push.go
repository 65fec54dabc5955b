package notifications

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/SherClockHolmes/webpush-go"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
)

// The supported kinds of token. Source: docs/decisions/notifications.md, "Token kinds".
const (
	webPush     = "web_push"
	webPushDev  = "web_push_dev"
	development = "development"
)

// PushKeys are a VAPID key pair and the contact for push services. Source: RFC 8292.
type PushKeys struct{ Public, Private, Subject string }

func (k PushKeys) configured() bool { return k.Public != "" && k.Private != "" }

// PushOptions configure push sending.
type PushOptions struct {
	Keys, DevKeys PushKeys
	// Hosts are the allowed push services, "*." for any subdomain. DevHosts are developers' machines as host[:port]; their addresses are not
	// checked.
	Hosts, DevHosts []string
}

// Push sends pushes to push services.
type Push struct {
	PushOptions
	publicClient, devClient *http.Client
	slots                   chan struct{} // held while a push is being processed
}

// NewPush returns a sender.
func NewPush(o PushOptions) *Push {
	return &Push{PushOptions: o, publicClient: newClient(false), devClient: newClient(true), slots: make(chan struct{}, maxActive)}
}

// PublicKey returns the key with which a browser subscribes for tokens of the kind; "" without one.
func (p *Push) PublicKey(kind string) string { return p.keys(kind).Public }

// Delivers reports whether a push can be sent to tokens of the kind.
func (p *Push) Delivers(kind string) bool { return kind == development || p.keys(kind).configured() }

func (p *Push) keys(kind string) PushKeys {
	switch kind {
	case webPush:
		return p.Keys
	case webPushDev:
		return p.DevKeys
	}
	return PushKeys{}
}

// sendOptions are the time to live and urgency of a push. Source: docs/decisions/notifications.md, "Web Push delivery"; RFC 8030, section 5.
type sendOptions struct {
	ttl     time.Duration
	urgency webpush.Urgency
}

var channelOptions = map[string]sendOptions{
	Escalations: {time.Hour, webpush.UrgencyHigh},
	Alerts:      {4 * time.Hour, webpush.UrgencyNormal},
	Reminders:   {24 * time.Hour, webpush.UrgencyNormal},
	DailyDigest: {12 * time.Hour, webpush.UrgencyLow},
}

// optionsFor returns the options of a push. Urgent tasks and critical device alerts are sent with high urgency, so that the device wakes up for
// them.
func optionsFor(channel, kind, severity string) sendOptions {
	m := channelOptions[channel]
	if kind == measureAgain { // the escalation is decided soon
		m = sendOptions{10 * time.Minute, webpush.UrgencyHigh}
	}
	if (kind == deviceNotice || kind == emrCorrection) && severity == "critical" {
		m.urgency = webpush.UrgencyHigh
	}
	return m
}

// topic returns a key by which a newer push replaces an undelivered older one about the same subject. It reveals no id.
func topic(channel, kind, patient string) (string, error) {
	key, err := collections.BlindIndex("push topic", channel+"\x00"+kind+"\x00"+patient)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:24]), nil
}

// message is one push to send.
type message struct {
	kind    string // of token
	to      subscription
	payload []byte
	ttl     time.Duration
	urgency webpush.Urgency
	topic   string
}

// pushResponse is the response of a push service; a status of 0 means none.
type pushResponse struct {
	status     int
	retryAfter time.Duration
	isRefused  bool // not sent: the endpoint is not allowed, or the token is damaged
	refusesKey bool // the subscription belongs to another key than ours
}

func (r pushResponse) isGone() bool {
	return r.status == http.StatusNotFound || r.status == http.StatusGone
}
func (r pushResponse) isAccepted() bool { return r.status/100 == 2 }

// canRetry reports whether a later attempt may succeed.
func (r pushResponse) canRetry() bool {
	return !r.isRefused && (r.status == 0 || r.status == http.StatusTooManyRequests || r.status/100 == 5)
}

const (
	// maxDrainedBytes bounds how much of a response is read.
	maxDrainedBytes = 4 << 10
	// maxActive bounds the pushes processed at a time, so that readings get processor time too. A push that waits longer than slotTimeout for its
	// response gives its slot to the next, because waiting uses no processor.
	maxActive   = 4
	slotTimeout = 5 * time.Millisecond
)

// send makes one exchange with a push service. Errors are not kept, because they contain the endpoint.
func (p *Push) send(ctx context.Context, l message, now time.Time) pushResponse {
	isDevHost, err := p.checkEndpoint(l.kind, l.to.Endpoint)
	keys := p.keys(l.kind)
	if err != nil || !keys.configured() {
		return pushResponse{isRefused: true}
	}
	client := p.publicClient
	if isDevHost {
		client = p.devClient
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return pushResponse{}
	}
	releaseSlot := sync.OnceFunc(func() { <-p.slots })
	defer releaseSlot()
	sent := false
	response, err := webpush.SendNotificationWithContext(ctx, l.payload, &webpush.Subscription{
		Endpoint: l.to.Endpoint, Keys: webpush.Keys{Auth: l.to.Keys.Auth, P256dh: l.to.Keys.P256dh},
	}, &webpush.Options{
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			sent = true
			// The timer covers reading the response too and is never stopped; releasing a slot twice does nothing.
			time.AfterFunc(slotTimeout, releaseSlot)
			return client.Do(r) //nolint:gosec // G704: checkEndpoint and the dialer restrict the target
		}),
		Subscriber: strings.TrimPrefix(keys.Subject, "mailto:"), VAPIDPublicKey: keys.Public, VAPIDPrivateKey: keys.Private,
		TTL: int(l.ttl.Seconds()), Urgency: l.urgency, Topic: l.topic,
	})
	if err != nil {
		return pushResponse{isRefused: !sent}
	}
	defer response.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(response.Body, maxDrainedBytes)) // read, so that the connection can be reused
	wait, _ := egress.RetryAfter(response.Header, now)
	return pushResponse{status: response.StatusCode, retryAfter: wait, refusesKey: refusesKey(response.StatusCode, reason)}
}

// keyReasons are texts of 400 responses to a subscription made with another key: Apple, older FCM.
// Mozilla and FCM respond with 401 and 403.
var keyReasons = []string{"vapid", "unauthorizedregistration"}

// refusesKey reports whether a push service refused our key. Any other 400 is about one push, such as its topic, and not about the token.
func refusesKey(status int, reason []byte) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusBadRequest:
		text := strings.ToLower(string(reason))
		return slices.ContainsFunc(keyReasons, func(known string) bool { return strings.Contains(text, known) })
	}
	return false
}

type doer func(*http.Request) (*http.Response, error)

// Do implements [webpush.HTTPClient].
func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// payload is the content that the device shows. URL is a path of the app and does not identify the patient.
type payload struct {
	Title          string `json:"title"`
	Body           string `json:"body"`
	Channel        string `json:"channel"`
	NotificationID int64  `json:"notification_id"`
	URL            string `json:"url"`
}

func (p payload) encode() []byte {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil // strings and a number always encode
	}
	return raw
}

// hostBackoffs records which push services do not answer, so that one of them does not delay pushes to the others.
type hostBackoffs struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (b *hostBackoffs) set(host string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = map[string]time.Time{}
	}
	b.until[host] = until
}

// retryAt returns when a push may be sent to the host again; zero means now.
func (b *hostBackoffs) retryAt(host string, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.until[host]; until.After(now) {
		return until
	}
	delete(b.until, host)
	return time.Time{}
}

const (
	maxEndpointLength = 2048
	pushTimeout       = 10 * time.Second
)

// errEndpoint omits the endpoint, because it works like a key to the user's device.
var errEndpoint = errors.New("the endpoint is not that of an allowed push service")

// checkEndpoint rejects an endpoint to which pushes may not be sent. isDevHost is true for a developer's machine, which may be private and use plain
// http. Source: docs/decisions/notifications.md, "Push endpoint safety".
func (p *Push) checkEndpoint(kind, endpoint string) (isDevHost bool, err error) {
	address, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > maxEndpointLength || address.User != nil || address.Opaque != "" || address.Fragment != "" {
		return false, errEndpoint
	}
	host := strings.ToLower(address.Hostname())
	if kind == webPushDev && slices.Contains(p.DevHosts, strings.ToLower(address.Host)) && (address.Scheme == "http" || address.Scheme == "https") {
		return true, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false, errEndpoint
	}
	if address.Scheme != "https" || address.Port() != "" && address.Port() != "443" || !p.isHostAllowed(host) {
		return false, errEndpoint
	}
	return false, nil
}

func (p *Push) isHostAllowed(host string) bool {
	return slices.ContainsFunc(p.Hosts, func(pattern string) bool {
		if suffix, any := strings.CutPrefix(pattern, "*"); any {
			return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
		}
		return host == pattern
	})
}

// newClient returns a client that does not follow redirects. Unless forDevHosts, it dials public addresses only. They are checked after name
// resolution, so that no host name leads into the private network.
func newClient(forDevHosts bool) *http.Client {
	dialer := &net.Dialer{Timeout: pushTimeout}
	if !forDevHosts {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !egress.Public(at.Addr()) {
				return fmt.Errorf("dial: %w", errEndpoint)
			}
			return nil
		}
	}
	return &http.Client{
		Timeout:       pushTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: pushTimeout,
			MaxIdleConnsPerHost: concurrency, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10,
		}, // no Proxy, so that the environment cannot redirect pushes
	}
}
