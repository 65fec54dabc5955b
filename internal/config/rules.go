package config

import (
	"errors"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// rules are the values of the tag "is": each checks one text that is not empty and returns its usual form.
// Messages never quote.
var rules = map[string]func(string) (string, error){
	"addr":        addr,
	"base":        base,
	"code":        pattern(`^[A-Za-z0-9._-]{1,64}$`, "must be letters, digits, dots, dashes or underscores"),
	"header":      pattern(`^[A-Za-z0-9-]+$`, "must be a list of header names"),
	"host":        host,
	"hostpattern": hostPattern,
	"hostport":    hostPort,
	"issuer":      pattern(`^[A-Za-z0-9 ._-]{1,64}$`, "must be up to 64 letters, digits, spaces, dots, dashes or underscores"),
	"mailbox":     mailbox,
	"origin":      origin,
	"page":        page,
	"scope":       pattern(`^[\x21\x23-\x5B\x5D-\x7E]+$`, "must be OAuth scopes separated by spaces"), // RFC 6749 section 3.3
	"uri":         uri,
	"url":         endpoint,
}

var (
	hostName      = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9])?$`)
	mailtoPattern = regexp.MustCompile(`^mailto:[^\s@]+@[^\s@]+$`)
)

var errURL = errors.New("must be an http or https address without user name")

func pattern(expression, message string) func(string) (string, error) {
	compiled, refused := regexp.MustCompile(expression), errors.New(message)
	return func(text string) (string, error) {
		if !compiled.MatchString(text) {
			return "", refused
		}
		return text, nil
	}
}

func webAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errURL
	}
	return u, nil
}

// endpoint is an address that is called as it stands.
func endpoint(text string) (string, error) {
	u, err := webAddress(text)
	if err != nil {
		return "", err
	}
	if u.Fragment != "" {
		return "", errors.New("must be an address without a fragment")
	}
	return text, nil
}

// page is an address to which a query is appended; a fragment may hold the path of a single-page app.
func page(text string) (string, error) {
	if _, err := webAddress(text); err != nil {
		return "", err
	}
	if strings.Contains(text, "?") {
		return "", errors.New("must be an address without a query")
	}
	return text, nil
}

// base is an address to which paths are appended; it loses its trailing slash.
func base(text string) (string, error) {
	u, err := webAddress(text)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("must be an address without query or fragment")
	}
	return strings.TrimRight(text, "/"), nil
}

// origin is scheme, host and port alone, lower case.
func origin(text string) (string, error) {
	text, err := base(text)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(text); err != nil || u.Path != "" {
		return "", errors.New("must be scheme and host only, such as https://rpm.example.org")
	}
	return strings.ToLower(text), nil
}

func uri(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" {
		return "", errors.New("must be an absolute URI")
	}
	return text, nil
}

func addr(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err != nil || !validPort(port) {
		return "", errors.New("must be an address to listen on such as 127.0.0.1:9100")
	}
	return text, nil
}

func validPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// hostPattern is a host name, optionally with "*." for its subdomains; never an address.
func hostPattern(text string) (string, error) {
	text = strings.ToLower(text)
	name := strings.TrimPrefix(text, "*.")
	if _, err := netip.ParseAddr(name); err == nil || !hostName.MatchString(name) {
		return "", errors.New("must be a list of host names, *. allowed in front, no addresses")
	}
	return text, nil
}

// host is one host name or address without port.
func host(text string) (string, error) {
	text = strings.ToLower(text)
	if _, err := netip.ParseAddr(text); err != nil && !hostName.MatchString(text) {
		return "", errors.New("must be a host name or address")
	}
	return text, nil
}

// hostPort is a host name, "*." allowed, or an address, with or without port.
func hostPort(text string) (string, error) {
	text = strings.ToLower(text)
	name := strings.Trim(text, "[]")
	if before, port, err := net.SplitHostPort(text); err == nil && validPort(port) {
		name = before
	}
	if _, err := host(strings.TrimPrefix(name, "*.")); err != nil {
		return "", errors.New("must be a list of host[:port]")
	}
	return text, nil
}

func mailbox(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", errors.New("must be a mail address, alone or as Name <address>")
	}
	return text, nil
}
