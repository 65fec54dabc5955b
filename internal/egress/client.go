// Package egress restricts requests to URLs that users configure: https to public hosts only (SSRF guard). The URL is checked when it is configured,
// and the address again when it is dialed, after name resolution, so that no host name leads into the private network.
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

// MaxURLLength bounds a URL.
const MaxURLLength = 2048

// ErrAddress reports a URL to which requests are forbidden. Its text omits the URL, because a URL may contain a secret.
var ErrAddress = errors.New("requests to this address are not allowed")

// Options configure a client.
type Options struct {
	Timeout time.Duration // of a whole request
	// DevHosts are developers' machines as host or host:port, in lower case. They may be private and use plain http. A host without a port allows
	// every port. Empty in production.
	DevHosts []string
}

// Client sends requests to allowed URLs. It does not follow redirects: the redirect is the answer. It is safe for concurrent use.
type Client struct {
	publicClient, devClient *http.Client
	devHosts                []string
}

// New returns a client.
func New(o Options) *Client {
	return &Client{publicClient: newClient(o.Timeout, true), devClient: newClient(o.Timeout, false), devHosts: o.DevHosts}
}

func newClient(timeout time.Duration, publicOnly bool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	if publicOnly {
		dialer.ControlContext = refusePrivate
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10,
		}, // no Proxy, so that the environment cannot redirect these requests
	}
}

// refusePrivate rejects a non-public address just before it is dialed.
func refusePrivate(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !Public(at.Addr()) {
		return fmt.Errorf("dial: %w", ErrAddress)
	}
	return nil
}

// Check rejects a forbidden URL, as far as possible without resolving its host name.
func (c *Client) Check(address string) error {
	_, err := c.clientFor(address)
	return err
}

// Do sends a request if its URL is allowed. The caller closes the body of the response and bounds how much of it is read.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	client, err := c.clientFor(r.URL.String())
	if err != nil {
		return nil, err
	}
	return client.Do(r) //nolint:gosec // G704: the URL was just checked, and the address is checked again when it is dialed
}

func (c *Client) clientFor(address string) (*http.Client, error) {
	at, err := url.Parse(address)
	if err != nil || len(address) > MaxURLLength || at.User != nil || at.Opaque != "" || at.Fragment != "" || at.Hostname() == "" {
		return nil, ErrAddress
	}
	host := strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
	if (at.Scheme == "http" || at.Scheme == "https") && (slices.Contains(c.devHosts, strings.ToLower(at.Host)) || slices.Contains(c.devHosts, host)) {
		return c.devClient, nil
	}
	if at.Scheme != "https" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil, ErrAddress
	}
	if literal, err := netip.ParseAddr(host); err == nil && !Public(literal) {
		return nil, ErrAddress
	}
	return c.publicClient, nil
}

// specialRanges are ranges that look public but are not. Source: IANA special-purpose address registries (RFC 6890).
var specialRanges = func() (ranges []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	return ranges
}()

// globalUnicast is the assigned part of IPv6. The rest is local, or embeds an IPv4 address. Source: RFC 4291, section 2.4; IANA IPv6 address space.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is on the public internet.
func Public(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	if !at.IsGlobalUnicast() || at.IsPrivate() || at.Is6() && !globalUnicast.Contains(at) {
		return false
	}
	return !slices.ContainsFunc(specialRanges, func(r netip.Prefix) bool { return r.Contains(at) })
}
