// Package outbound knows where requests may go whose address somebody else chose: to public hosts over https, and nowhere else. The address is
// checked when it is written down, for the person who wrote it, and again when it is dialled, after its name was looked up, so that no name
// leads into the house. It knows nothing of what is asked or sent.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// LongestURL is how long an address may be.
const LongestURL = 2048

// ErrAddress says that requests may not go to an address. It does not repeat it: an address may hold a secret.
var ErrAddress = errors.New("not an address that requests may go to")

// Options of a client.
type Options struct {
	Timeout time.Duration // of a whole request
	// DevHosts are host or host:port, in lower case, of machines of developers, which may be near and speak plain http. One without a port
	// stands for every port. Never in production.
	DevHosts []string
}

// Client sends requests to the addresses of others. It follows no redirect: the answer is the redirect. It is safe for concurrent use.
type Client struct {
	outside, inside *http.Client
	devHosts        []string
}

// New returns a client.
func New(o Options) *Client {
	return &Client{outside: newClient(o.Timeout, true), inside: newClient(o.Timeout, false), devHosts: o.DevHosts}
}

func newClient(timeout time.Duration, publicOnly bool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	if publicOnly {
		dialer.ControlContext = refuseNear
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10,
		}, // no Proxy: the environment has no say in where these requests go
	}
}

// refuseNear is told of each address just before it is dialled.
func refuseNear(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !Public(at.Addr()) {
		return fmt.Errorf("dial: %w", ErrAddress)
	}
	return nil
}

// Check refuses an address that no request could go to, as far as that shows before its name is looked up.
func (c *Client) Check(address string) error {
	_, err := c.clientFor(address)
	return err
}

// Do sends a request, if it may go where it is addressed. The caller closes the body of the answer, and bounds what is read of it.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	client, err := c.clientFor(r.URL.String())
	if err != nil {
		return nil, err
	}
	return client.Do(r) //nolint:gosec // G704: where it may go is what was just checked, and is checked again when it is dialled
}

func (c *Client) clientFor(address string) (*http.Client, error) {
	at, err := url.Parse(address)
	if err != nil || len(address) > LongestURL || at.User != nil || at.Opaque != "" || at.Fragment != "" || at.Hostname() == "" {
		return nil, ErrAddress
	}
	host := strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
	if (at.Scheme == "http" || at.Scheme == "https") && (slices.Contains(c.devHosts, strings.ToLower(at.Host)) || slices.Contains(c.devHosts, host)) {
		return c.inside, nil
	}
	if at.Scheme != "https" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil, ErrAddress
	}
	if literal, err := netip.ParseAddr(host); err == nil && !Public(literal) {
		return nil, ErrAddress
	}
	return c.outside, nil
}

// special are ranges that reach nobody in public though they look like it. Source: IANA special-purpose address registries (RFC 6890).
var special = func() (ranges []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	return ranges
}()

// global is all of IPv6 that is given out: the rest is local, or holds an IPv4 address. Source: RFC 4291, section 2.4; IANA IPv6 address space.
var global = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is one of the public internet's.
func Public(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	if !at.IsGlobalUnicast() || at.IsPrivate() || at.Is6() && !global.Contains(at) {
		return false
	}
	return !slices.ContainsFunc(special, func(r netip.Prefix) bool { return r.Contains(at) })
}
