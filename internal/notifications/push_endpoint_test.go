package notifications_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/notifications"
)

// A name that resolves to a private address is rejected when it is dialed, before a byte is sent. Developers can reach their own machine.
func TestPrivateAddressesAreNotDialed(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	server.Start()
	t.Cleanup(server.Close)
	push := notifications.NewPush(notifications.PushOptions{})
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		if err := get(t, push.Client(false), "http://"+host+port); !errors.Is(err, notifications.ErrEndpoint) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if err := get(t, push.Client(true), "http://localhost"+port); err != nil || connections.Load() == 0 {
		t.Errorf("the developer's own host is not reachable: %v", err)
	}
}

func get(t *testing.T, client *http.Client, address string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Redirects of a push service are not followed.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var redirected atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected.Add(1) }))
	t.Cleanup(elsewhere.Close)
	service := newPushService(t)
	push := notifications.NewPush(notifications.PushOptions{DevKeys: newKeys(t, "mailto:postmaster@example.org"), DevHosts: []string{service.host(), strings.TrimPrefix(elsewhere.URL, "http://")}})
	for _, code := range []int{301, 302, 303, 307, 308} {
		service.answer = func(rw http.ResponseWriter, r *http.Request, _ int) { http.Redirect(rw, r, elsewhere.URL+"/led", code) }
		status, again := push.SendOnce(t.Context(), newBrowser(t).subscribe(service.URL+"/phone"), time.Now())
		if status != code || again {
			t.Errorf("%d resulted in %d, retry: %v", code, status, again)
		}
	}
	if n := redirected.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// A push service has ten seconds for its complete response.
func TestHangingResponsesTimeOut(t *testing.T) {
	keys := newKeys(t, "mailto:postmaster@example.org")
	for name, c := range map[string]struct {
		sends  string // before it hangs
		status int
		again  bool
	}{
		"nothing":       {"", 0, true},
		"half a header": {"HTTP/1.1 201 Cre", 0, true},
		"half a body":   {"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf", 201, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				push := notifications.NewPush(notifications.PushOptions{DevKeys: keys, DevHosts: []string{"push.example"}})
				push.SetDevDialer(func() net.Conn { return hanging(c.sends) })
				began := time.Now()
				status, again := push.SendOnce(context.Background(), newBrowser(t).subscribe("http://push.example/phone"), began)
				if status != c.status || again != c.again {
					t.Errorf("resulted in %d, retry: %v", status, again)
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// hanging is a connection to a push service that sends a text and then nothing more, but reads everything until the client disconnects.
func hanging(text string) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Read(make([]byte, 1)) // a response before the request is ignored
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_, _ = io.WriteString(theirs, text)
	}()
	return ours
}

// Pushes that wait for a slow response release their slots.
func TestHangingResponsesReleaseSlots(t *testing.T) {
	keys := newKeys(t, "mailto:postmaster@example.org")
	for name, text := range map[string]string{"nothing": "", "half a body": "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				push := notifications.NewPush(notifications.PushOptions{DevKeys: keys, DevHosts: []string{"push.example"}})
				push.SetDevDialer(func() net.Conn { return hanging(text) })
				began := time.Now()
				var under sync.WaitGroup
				for range 20 {
					under.Go(func() {
						push.SendOnce(context.Background(), newBrowser(t).subscribe("http://push.example/phone"), began)
					})
				}
				under.Wait()
				if took := time.Since(began); took > 11*time.Second {
					t.Errorf("all of them took %v", took)
				}
			})
		})
	}
}

// A push that waits for a slot stops with the service.
func TestPushWaitingForASlotStops(t *testing.T) {
	push := notifications.NewPush(notifications.PushOptions{DevKeys: newKeys(t, "mailto:postmaster@example.org"), DevHosts: []string{"push.example"}})
	push.FillSlots()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if status, _ := push.SendOnce(ctx, newBrowser(t).subscribe("http://push.example/phone"), time.Now()); status != 0 {
		t.Errorf("resulted in %d", status)
	}
}
