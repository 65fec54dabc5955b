package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
)

// Source: IANA special-purpose address registries (RFC 6890).
func TestPublicAddresses(t *testing.T) {
	for list, public := range map[string]bool{
		"8.8.8.8 142.250.180.10 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 2a00:1450:4001:82a::200a 2606:4700::1111 ::ffff:8.8.8.8": true,
		"127.0.0.1 127.8.9.10 0.0.0.0 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.255":          false,
		"192.0.0.1 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255":      false,
		":: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12:3456::1 fec0::1 ff02::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 5f00::1":       false,
		"::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::127.0.0.1 64:ff9b::127.0.0.1 64:ff9b:1::a00:1":          false,
	} {
		for text := range strings.FieldsSeq(list) {
			if got := egress.Public(netip.MustParseAddr(text)); got != public {
				t.Errorf("%s is public: %v", text, got)
			}
		}
	}
}

// Forbidden URLs are rejected when they are configured.
func TestCheckRejectsForbiddenURLs(t *testing.T) {
	client := egress.New(egress.Options{Timeout: time.Second, DevHosts: []string{"127.0.0.1", "dev.example:8080"}})
	for list, allowed := range map[string]bool{
		"https://keys.example.org/jwks https://keys.example.org:8443/a?b=c https://8.8.8.8/ http://127.0.0.1:9999/ http://127.0.0.1/ http://DEV.example:8080/x":                            true,
		"http://keys.example.org/ ftp://keys.example.org/ https://user:secret@keys.example.org/ https://keys.example.org/#x //keys.example.org/ /jwks jwks https:///x":                     false,
		"https://localhost/ https://localhost./ https://a.localhost/ https://10.0.0.1/ https://[::1]/ https://[::ffff:10.0.0.1]/ https://169.254.169.254/latest https://[fe80::1%25eth0]/": false,
		"http://dev.example:8081/ http://dev.example/ file:///etc/passwd data:text/plain,x https:keys.example.org javascript:alert(1)":                                                     false,
	} {
		for address := range strings.FieldsSeq(list) {
			if err := client.Check(address); (err == nil) != allowed || err != nil && (!errors.Is(err, egress.ErrAddress) || strings.Contains(err.Error(), address)) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	if client.Check("https://keys.example.org/"+strings.Repeat("a", egress.MaxURLLength)) == nil {
		t.Error("an overlong URL is allowed")
	}
}

// A name that resolves to a private address is rejected when it is dialed, before a byte is sent, and redirects are not followed.
func TestPrivateAddressesAreNotDialed(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.RedirectHandler("http://169.254.169.254/latest/", http.StatusFound))
	server.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	strict := egress.New(egress.Options{Timeout: 5 * time.Second})
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		if status, err := get(t, strict.Do, "https://"+host+port); !errors.Is(err, egress.ErrAddress) {
			t.Errorf("%s: %d, %v", host, status, err)
		}
		if status, err := get(t, strict.PublicClient().Do, "https://"+host+port); !errors.Is(err, egress.ErrAddress) {
			t.Errorf("%s, dialed: %d, %v", host, status, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	plain := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/", http.StatusFound))
	t.Cleanup(plain.Close)
	developers := egress.New(egress.Options{Timeout: 5 * time.Second, DevHosts: []string{"127.0.0.1"}})
	if status, err := get(t, developers.Do, plain.URL); err != nil || status != http.StatusFound {
		t.Errorf("the redirect was followed: %d, %v", status, err)
	}
	if _, err := get(t, strict.Do, plain.URL); !errors.Is(err, egress.ErrAddress) {
		t.Errorf("plain http: %v", err)
	}
}

func get(t *testing.T, do func(*http.Request) (*http.Response, error), address string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
