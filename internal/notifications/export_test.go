package notifications

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Subject is the mail's subject.
func (t Template) Subject() string { return letters[t].subject }

// ErrEndpoint is why a push does not go somewhere.
var ErrEndpoint = errEndpoint

// Client is what pushes are sent with, to push services or to developers' own hosts.
func (p *Push) Client(inside bool) *http.Client {
	if inside {
		return p.inside
	}
	return p.outside
}

// DialDevelopers lets connections to developers' own hosts be made by a function.
func (p *Push) DialDevelopers(dial func() net.Conn) {
	p.inside.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
}

// Occupy works on as many pushes as may be worked on at a time, and never ends.
func (p *Push) Occupy() {
	for range abreast {
		p.working <- struct{}{}
	}
}

// Try sends one push to a subscription of developers and returns the status, 0 for no answer, and whether to try again.
func (p *Push) Try(ctx context.Context, token string, now time.Time) (status int, again bool) {
	to, _ := open(phi.Text(token))
	got := p.send(ctx, message{kind: webPushDev, to: to, payload: []byte("{}"), ttl: time.Minute, urgency: manners[Alerts].urgency}, now)
	return got.status, got.again()
}
