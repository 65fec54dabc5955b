package notifications

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Subject returns the subject of the mail.
func (t Template) Subject() string { return mailTexts[t].subject }

// ErrEndpoint is the error for a forbidden push endpoint.
var ErrEndpoint = errEndpoint

// Client returns the HTTP client for public push services or for developers' hosts.
func (p *Push) Client(forDevHosts bool) *http.Client {
	if forDevHosts {
		return p.devClient
	}
	return p.publicClient
}

// SetDevDialer replaces the dialer for developers' hosts.
func (p *Push) SetDevDialer(dial func() net.Conn) {
	p.devClient.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
}

// FillSlots occupies all slots for active pushes and never frees them.
func (p *Push) FillSlots() {
	for range maxActive {
		p.slots <- struct{}{}
	}
}

// SendOnce sends one push to a developer's subscription. It returns the status, 0 without a response, and whether to retry.
func (p *Push) SendOnce(ctx context.Context, token string, now time.Time) (status int, again bool) {
	to, _ := decodeSubscription(phi.Text(token))
	got := p.send(ctx, message{kind: webPushDev, to: to, payload: []byte("{}"), ttl: time.Minute, urgency: channelOptions[Alerts].urgency}, now)
	return got.status, got.canRetry()
}

// PushTitles are all titles that a push may have.
var PushTitles = pushTitles
