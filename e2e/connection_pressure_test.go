package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Attacks from the network that hold resources, and their effect on other clients. All of 127.0.0.0/8 is this machine, so a
// test can use many addresses.

// from returns a client that connects from an address of its own, with a new connection for each request.
func from(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 20 * time.Second}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}}
}

// Requests that attackers never finish.
const (
	halfBody = "POST /api/v1/auth/login/ HTTP/1.1\r\nHost: vigil\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{\"email\":\""
	halfHead = "POST /api/v1/auth/login/ HTTP/1.1\r\nHost: vigil\r\nX-Slow: "
)

// dialFrom opens a connection from an address and sends text.
func dialFrom(ctx context.Context, address, to, say string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 20 * time.Second}
	connection, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(connection, say)
	return connection, err
}

// attackers is the number of processes of an attack: one process may not open enough connections.
const attackers = 4

// TestAttacker is one process of an attack: it holds a number of connections open from each of the addresses, and opens a
// new one whenever one is closed, until its standard input ends.
func TestAttacker(t *testing.T) {
	plan := strings.Split(os.Getenv("VIGIL_TEST_ATTACK"), " ")
	if len(plan) < 4 {
		t.Skip("started by the attack tests")
	}
	count, _ := strconv.Atoi(plan[0])
	say := map[string]string{"body": halfBody, "head": halfHead, "stream": "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n"}[plan[1]]
	to, addresses := plan[2], plan[3:]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var begun atomic.Int64
	for i := range count {
		go func() {
			for first := true; ctx.Err() == nil; first = false {
				connection, err := dialFrom(ctx, addresses[i%len(addresses)], to, say)
				if first {
					begun.Add(1)
				}
				if err == nil {
					_, _ = io.Copy(io.Discard, connection)
					_ = connection.Close()
				}
				pause(ctx, 10*time.Second)
			}
		}()
		if i%50 == 49 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for int(begun.Load()) < count {
		time.Sleep(50 * time.Millisecond)
	}
	_, _ = os.Stdout.WriteString("\nbegun\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// attack holds count connections open until the test ends.
func attack(t *testing.T, p *practice, kind string, count int, addresses ...string) {
	t.Helper()
	var starting sync.WaitGroup
	for range attackers {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAttacker$", "-test.timeout", "30m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("VIGIL_TEST_ATTACK=%d %s %s %s", count/attackers, kind, strings.TrimPrefix(p.URL, "http://"), strings.Join(addresses, " ")))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		starting.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "begun"; {
			}
		})
	}
	starting.Wait()
}

// memory is the process's resident memory in MB.
func (p *process) memory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("/proc is not available")
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kB, _ := strconv.Atoi(fields[1])
			return kB / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// deliver sends readings as the gateway does, each over a new connection from an address, and returns their sorted
// latencies. An unanswered one counts as the client's timeout.
func (p *practice) deliver(t *testing.T, address string, count int) (took []time.Duration) {
	t.Helper()
	client := from(address)
	failed := 0
	for i := range count {
		body := encode(t, measurement("GW-PRESSED", "BP-PRESSED", 120, 80, time.Now().Add(-time.Duration(i+1)*time.Minute)))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+webhook, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		headers := signature(p.WebhookSecret, body, time.Now())
		request.Header.Set(headers[0], headers[1])
		request.Header.Set(headers[2], headers[3])
		began := time.Now()
		response, err := client.Do(request)
		if err != nil || response.StatusCode != 200 {
			failed++
		}
		if err == nil {
			_ = response.Body.Close()
		}
		took = append(took, time.Since(began))
		if failed == 5 {
			t.Errorf("%d of %d webhooks were not accepted, the last: %v", failed, i+1, err)
			break
		}
	}
	slices.Sort(took)
	return took
}

func percentile(sorted []time.Duration, p int) time.Duration { return sorted[(len(sorted)-1)*p/100] }

// newPressurePractice returns a practice with one patient that receives readings.
func newPressurePractice(t *testing.T, extra ...string) *practice {
	t.Helper()
	p := newPractice(t, extra...).serve(t, "")
	p.giveDevice(t, "BP-PRESSED", p.patient(t, object{"gateway_patient_id": "GW-PRESSED"}))
	return p
}

// skipUnlessTorture skips a test that only make torture runs.
func skipUnlessTorture(t *testing.T) {
	t.Helper()
	if os.Getenv("TORTURE") == "" {
		t.Skip("make torture runs this")
	}
}

const pressure = 20_000

// With 20,000 half-sent requests from three addresses, the gateway is answered and the memory is bounded.
func TestHalfSentRequests(t *testing.T) {
	skipUnlessTorture(t)
	for _, kind := range []string{"body", "head"} {
		t.Run(kind, func(t *testing.T) {
			p := newPressurePractice(t)
			before := p.memory(t)
			p.deliver(t, "127.0.0.5", 20)
			attack(t, p, kind, pressure, "127.0.0.2", "127.0.0.3", "127.0.0.4")
			most := 0
			var took []time.Duration
			for range 10 {
				took = append(took, p.deliver(t, "127.0.0.5", 20)...)
				most = max(most, p.memory(t))
				if t.Failed() {
					break
				}
			}
			slices.Sort(took)
			t.Logf("webhooks under %d half-sent requests: p50 %v, p99 %v, worst %v; memory %d MB, before %d MB", pressure,
				percentile(took, 50), percentile(took, 99), took[len(took)-1], most, before)
			if p99 := percentile(took, 99); p99 > 2*time.Second {
				t.Errorf("p99 is %v", p99)
			}
			if most > 300 {
				t.Errorf("%d MB", most)
			}
		})
	}
}

// 200 concurrent sign-ins do not delay the gateway, and each is answered within ten seconds.
func TestConcurrentSignIns(t *testing.T) {
	skipUnlessTorture(t)
	for _, door := range []struct{ name, path, body string }{
		{"users", "/api/v1/auth/login/", `{"email":"admin@vigil.test","password":"Wrong-Password-%d"}`},
		{"nobody", "/api/v1/auth/login/", `{"email":"nobody-%d@vigil.test","password":"Wrong-Password-1"}`},
		{"superusers", "/api/collections/_superusers/auth-with-password", `{"identity":"dashboard@vigil.test","password":"Wrong-Password-%d"}`},
		{"no superuser", "/api/collections/_superusers/auth-with-password", `{"identity":"nobody-%d@vigil.test","password":"Wrong-Password-1"}`},
	} {
		t.Run(door.name, func(t *testing.T) {
			p := newPressurePractice(t)
			p.deliver(t, "127.0.0.5", 20)
			ctx, over := context.WithCancel(t.Context())
			var people sync.WaitGroup
			var lock sync.Mutex
			var took []time.Duration
			answers := map[int]int{}
			for i := range 200 {
				people.Go(func() {
					client := from(fmt.Sprintf("127.0.1.%d", i+1)) // PocketBase limits its own sign-in by address
					for try := 0; ctx.Err() == nil; try++ {
						request, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+door.path, strings.NewReader(fmt.Sprintf(door.body, 1000*i+try)))
						request.Header.Set("Content-Type", "application/json")
						began := time.Now()
						response, err := client.Do(request)
						if err != nil {
							if ctx.Err() == nil {
								t.Error(err)
							}
							return
						}
						_, _ = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
						lock.Lock()
						answers[response.StatusCode]++
						took = append(took, time.Since(began))
						lock.Unlock()
						if response.StatusCode == 503 {
							pause(ctx, time.Second)
						}
					}
				})
			}
			pause(ctx, 2*time.Second)
			var webhooks []time.Duration
			for began := time.Now(); time.Since(began) < 30*time.Second && !t.Failed(); {
				webhooks = append(webhooks, p.deliver(t, "127.0.0.5", 10)...)
			}
			over()
			people.Wait()
			slices.Sort(took)
			slices.Sort(webhooks)
			if len(took) == 0 {
				t.Fatal("no sign-in was answered")
			}
			t.Logf("webhooks beside 200 sign-ins: %d, p50 %v, p99 %v; sign-ins: %v, p50 %v, worst %v", len(webhooks), percentile(webhooks, 50),
				percentile(webhooks, 99), answers, percentile(took, 50), took[len(took)-1])
			if p99 := percentile(webhooks, 99); p99 > time.Second {
				t.Errorf("p99 of webhooks is %v", p99)
			}
			if worst := took[len(took)-1]; worst > 10*time.Second {
				t.Errorf("a sign-in took %v", worst)
			}
		})
	}
}

// 6,000 streams without a subscription do not delay a subscriber of the triage list.
func TestManyStreams(t *testing.T) {
	skipUnlessTorture(t)
	p := newPressurePractice(t, "VIGIL_RATE_LIMIT_REALTIME=0", "VIGIL_MAX_CONNECTIONS=0", "VIGIL_MAX_CONNECTIONS_PER_ADDRESS=0")
	token := p.Admin(t)
	attack(t, p, "stream", 6000, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	stream, err := dialFrom(t.Context(), "127.0.0.5", strings.TrimPrefix(p.URL, "http://"), "GET /api/realtime HTTP/1.1\r\nHost: vigil\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "id:") {
	}
	body := fmt.Sprintf(`{"clientId":%q,"subscriptions":["triage"]}`, strings.TrimPrefix(lines.Text(), "id:"))
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/realtime", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", token)
	if a := sendRequestFrom(t, "127.0.0.5", request); a.status != 204 {
		t.Fatalf("subscribing answered %d: %s", a.status, a.body)
	}
	var worst time.Duration
	for range 10 {
		pause(t.Context(), 2*time.Second)
		p.deliver(t, "127.0.0.5", 1)
		began := time.Now()
		_ = stream.SetReadDeadline(began.Add(30 * time.Second))
		for heard := false; !heard && lines.Scan(); {
			heard = strings.Contains(lines.Text(), `"type":"patient"`)
		}
		worst = max(worst, time.Since(began))
	}
	if err := lines.Err(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	t.Logf("with 6,000 streams the list receives a reading after at most %v; memory %d MB", worst, p.memory(t))
	if worst > 2*time.Second {
		t.Errorf("the list received a reading after %v", worst)
	}
}

// sendRequestFrom is ask from a given address.
func sendRequestFrom(t *testing.T, address string, request *http.Request) answer {
	t.Helper()
	response, err := from(address).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{request.Method + " " + request.URL.Path, response.StatusCode, response.Header, read}
}
