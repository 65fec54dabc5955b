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

// The kinds of token that we know what to do with. Source: docs/decisions/notifications.md, "Token kinds".
const (
	webPush     = "web_push"
	webPushDev  = "web_push_dev"
	development = "development"
)

// PushKeys are a key pair for Web Push and whom a push service may write to about it. Source: RFC 8292.
type PushKeys struct{ Public, Private, Subject string }

func (k PushKeys) configured() bool { return k.Public != "" && k.Private != "" }

// PushOptions are what sending takes from outside.
type PushOptions struct {
	Keys, DevKeys PushKeys
	// Hosts are push services, "*." for any subdomain; DevHosts are host[:port] of developers, without any check of where they are.
	Hosts, DevHosts []string
}

// Push sends to push services.
type Push struct {
	PushOptions
	outside, inside *http.Client
	working         chan struct{} // one for each push that is worked on
}

// NewPush returns what sends pushes.
func NewPush(o PushOptions) *Push {
	return &Push{PushOptions: o, outside: newClient(false), inside: newClient(true), working: make(chan struct{}, abreast)}
}

// PublicKey is the key with which a browser subscribes for tokens of the kind; "" when there is none.
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

// manner is how a channel's pushes are sent. Source: docs/decisions/notifications.md, "Web Push delivery"; RFC 8030, section 5.
type manner struct {
	life    time.Duration
	urgency webpush.Urgency
}

var manners = map[string]manner{
	Escalations: {time.Hour, webpush.UrgencyHigh},
	Alerts:      {4 * time.Hour, webpush.UrgencyNormal},
	Reminders:   {24 * time.Hour, webpush.UrgencyNormal},
	DailyDigest: {12 * time.Hour, webpush.UrgencyLow},
}

// mannerOf a push: an urgent task, and what is critical about a device, does not wait for the screen to be lit.
func mannerOf(channel, kind, severity string) manner {
	m := manners[channel]
	if kind == measureAgain { // what comes of it is decided soon
		m = manner{10 * time.Minute, webpush.UrgencyHigh}
	}
	if (kind == deviceNotice || kind == emrCorrection) && severity == "critical" {
		m.urgency = webpush.UrgencyHigh
	}
	return m
}

// topic lets a later push take the place of an earlier one about the same matter that was not delivered yet, and shows no id.
func topic(channel, kind, patient string) (string, error) {
	key, err := collections.BlindIndex("push topic", channel+"\x00"+kind+"\x00"+patient)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:24]), nil
}

// message is one push on its way.
type message struct {
	kind    string // of token
	to      subscription
	payload []byte
	ttl     time.Duration
	urgency webpush.Urgency
	topic   string
}

// answer is what a push service said; a status of 0 is none at all.
type answer struct {
	status     int
	retryAfter time.Duration
	refused    bool // by us: the address is not allowed, or the token is damaged
}

func (a answer) gone() bool { return a.status == http.StatusNotFound || a.status == http.StatusGone }
func (a answer) sent() bool { return a.status/100 == 2 }

// again reports whether it may go better later.
func (a answer) again() bool {
	return !a.refused && (a.status == 0 || a.status == http.StatusTooManyRequests || a.status/100 == 5)
}

const (
	// drained bounds what is read of an answer.
	drained = 4 << 10
	// abreast is how many pushes are worked on at a time, so that the processors are there for readings too. One whose push service takes
	// longer than patience to answer makes way for the next: waiting is no work.
	abreast  = 4
	patience = 5 * time.Millisecond
)

// send holds one conversation with a push service. No error of it is kept: they quote addresses.
func (p *Push) send(ctx context.Context, l message, now time.Time) answer {
	inside, err := p.allowed(l.kind, l.to.Endpoint)
	keys := p.keys(l.kind)
	if err != nil || !keys.configured() {
		return answer{refused: true}
	}
	client := p.outside
	if inside {
		client = p.inside
	}
	select {
	case p.working <- struct{}{}:
	case <-ctx.Done():
		return answer{}
	}
	makeWay := sync.OnceFunc(func() { <-p.working })
	defer makeWay()
	sent := false
	response, err := webpush.SendNotificationWithContext(ctx, l.payload, &webpush.Subscription{
		Endpoint: l.to.Endpoint, Keys: webpush.Keys{Auth: l.to.Keys.Auth, P256dh: l.to.Keys.P256dh},
	}, &webpush.Options{
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			sent = true
			// The patience is for the answer's body too, so nothing stops it: to make way when all is over does nothing.
			time.AfterFunc(patience, makeWay)
			return client.Do(r) //nolint:gosec // G704: allowed and the dialer say where to
		}),
		Subscriber: strings.TrimPrefix(keys.Subject, "mailto:"), VAPIDPublicKey: keys.Public, VAPIDPrivateKey: keys.Private,
		TTL: int(l.ttl.Seconds()), Urgency: l.urgency, Topic: l.topic,
	})
	if err != nil {
		return answer{refused: !sent}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, drained)) // so that the connection can be used again
	wait, _ := egress.RetryAfter(response.Header, now)
	return answer{status: response.StatusCode, retryAfter: wait}
}

type doer func(*http.Request) (*http.Response, error)

// Do implements [webpush.HTTPClient].
func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// payload is what the device shows; url is a path of the app and names no patient.
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
		return nil // texts and a number always encode
	}
	return raw
}

// pauses remembers which push services do not answer, so that one of them does not hold up the pushes to all others.
type pauses struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *pauses) set(host string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	p.until[host] = until
}

// of is when the host may be tried again; the zero time for now.
func (p *pauses) of(host string, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.until[host]; until.After(now) {
		return until
	}
	delete(p.until, host)
	return time.Time{}
}

const (
	longestEndpoint = 2048
	pushTimeout     = 10 * time.Second
)

// errEndpoint hides the address: it is as good as a key to the person's device.
var errEndpoint = errors.New("not an address of a push service that is allowed")

// allowed checks that pushes may go to an address. inside is true for the hosts of developers, which may be
// near and speak plain http. Source: docs/decisions/notifications.md, "Push endpoint safety".
func (p *Push) allowed(kind, endpoint string) (inside bool, err error) {
	address, err := url.Parse(endpoint)
	if err != nil || len(endpoint) > longestEndpoint || address.User != nil || address.Opaque != "" || address.Fragment != "" {
		return false, errEndpoint
	}
	host := strings.ToLower(address.Hostname())
	if kind == webPushDev && slices.Contains(p.DevHosts, strings.ToLower(address.Host)) && (address.Scheme == "http" || address.Scheme == "https") {
		return true, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false, errEndpoint
	}
	if address.Scheme != "https" || address.Port() != "" && address.Port() != "443" || !p.hostAllowed(host) {
		return false, errEndpoint
	}
	return false, nil
}

func (p *Push) hostAllowed(host string) bool {
	return slices.ContainsFunc(p.Hosts, func(pattern string) bool {
		if suffix, any := strings.CutPrefix(pattern, "*"); any {
			return strings.HasSuffix(host, suffix) && len(host) > len(suffix)
		}
		return host == pattern
	})
}

// newClient is a client that follows nobody anywhere. Unless inside, it connects to public addresses only: they are checked when it dials,
// after the name was looked up, so that no name can lead it into the house.
func newClient(inside bool) *http.Client {
	dialer := &net.Dialer{Timeout: pushTimeout}
	if !inside {
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
		}, // no Proxy: the environment has no say in where pushes go
	}
}
