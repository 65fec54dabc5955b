package notifications

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
			if err != nil || !isPublic(at.Addr()) {
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

func isPublic(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	if !at.IsGlobalUnicast() || at.IsPrivate() || at.Is6() && !global.Contains(at) {
		return false
	}
	return !slices.ContainsFunc(special, func(r netip.Prefix) bool { return r.Contains(at) })
}
