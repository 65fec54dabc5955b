package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// subscribers is the number of browsers subscribed to the list.
const subscribers = 1000

// live measures the time until the last of a thousand subscribers receives a reading, and the ingestion rate that remains
// while all are subscribed. The subscribers are another process on the same machine.
func live(ctx context.Context, b built, p plan, t *table) error {
	candidate, err := b.candidate(ctx, content{patients: ingestPatients})
	if err != nil {
		return err
	}
	defer candidate.stop()
	to, l := readings(candidate, time.Now().Add(-25*24*time.Hour)), load{64, p.warmUp, p.length}
	alone, err := pressRounds(ctx, p, to, l)
	if err != nil {
		return err
	}
	crowd, err := startSubscribers(ctx, b, candidate)
	if err != nil {
		return err
	}
	defer crowd.stop()
	var received []time.Duration
	for i := range 10 * p.rounds {
		patient, sent := candidate.patients[i], time.Now()
		body := fmt.Sprintf(`{"patient_id":"%s","systolic":%d,"diastolic":95,"pulse":70,"measured_at":"%s"}`, patient, 160+i, sent.UTC().Format(time.RFC3339))
		if _, status, answer, err := candidate.request(ctx, "POST", "/api/v1/ingestion/blood-pressure/", body); err != nil || status != 201 {
			return fmt.Errorf("reading answered %d: %s (%w)", status, answer, err)
		}
		last, err := crowd.await(patient)
		if err != nil {
			return err
		}
		received = append(received, last.Sub(sent))
	}
	latency := summarise(received, 0, time.Second)
	t.add(row{
		path: "live event, last of 1,000 subscribers", clients: subscribers, figures: figures{p50: latency.p50, p95: latency.p95, p99: latency.p99, max: latency.max},
		value: latency.max.Seconds(), unit: "s", aim: aim{2, .3}, note: fmt.Sprintf("from before the reading was sent; %d readings; worst", len(received)),
	})
	before := to.accepted.Load()
	subscribed, err := pressRounds(ctx, p, to, l)
	if err != nil {
		return err
	}
	if to.accepted.Load() == before {
		return errors.New("nothing was stored while the subscribers were connected")
	}
	crowd.stop()
	after, err := pressRounds(ctx, p, to, l)
	if err != nil {
		return err
	}
	// Ingestion slows down as the database grows: compare with the mean of the rates before and after.
	first, last := alone.perSecond, after.perSecond
	alone.perSecond, alone.p50 = (first+last)/2, (alone.p50+after.p50)/2
	t.add(row{
		path: "ingest with 1,000 subscribers", clients: l.clients, figures: subscribed, against: "no subscribers", other: alone,
		value: 100 * byThroughput(subscribed, alone), unit: "%", aim: aim{80, 95},
		note: fmt.Sprintf("the subscribers' own CPU time on the same cores included; %.0f before, %.0f after", first, last),
	})
	return candidate.checkStored(to.accepted.Load() + int64(len(received)))
}

// pressRounds runs all rounds on one target and returns the median.
func pressRounds(ctx context.Context, p plan, to *target, l load) (figures, error) {
	rounds, err := alternate(ctx, p, l, to)
	if err != nil {
		return figures{}, err
	}
	return median(slices.Concat(rounds...)), nil
}

// subscriberProcess is the process with the subscribers.
type subscriberProcess struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startSubscribers(ctx context.Context, b built, s *server) (*subscriberProcess, error) {
	c := &subscriberProcess{cmd: exec.CommandContext(ctx, b.self, "listen", s.addr, strconv.Itoa(subscribers))}
	c.cmd.Env, c.cmd.Stderr = append(b.environ(), "BENCH_TOKEN="+s.token), os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	_, err = c.await("ready")
	return c, err
}

// await returns the time when all subscribers had received an event about what. Both processes use this machine's clock.
func (c *subscriberProcess) await(what string) (time.Time, error) {
	for c.lines.Scan() {
		received, at, _ := strings.Cut(c.lines.Text(), " ")
		if received != what {
			continue
		}
		nanoseconds, err := strconv.ParseInt(at, 10, 64)
		return time.Unix(0, nanoseconds), err
	}
	return time.Time{}, fmt.Errorf("the subscriber process ended: %w", errors.Join(c.lines.Err(), errors.New("no more lines")))
}

func (c *subscriberProcess) stop() {
	_ = c.cmd.Process.Kill() // fails when the process has already exited
	_ = c.cmd.Wait()         // killed
}

// runSubscribers is the subscriber process: it opens count subscriptions and prints a line with the time when all have received a
// patient's first event.
func runSubscribers(args []string) error {
	addr, token := args[0], os.Getenv("BENCH_TOKEN")
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	received, failed := make(chan string, 1<<16), make(chan error, count)
	ctx := context.Background()
	for range count {
		stream, err := subscribe(ctx, addr, token)
		if err != nil {
			return err
		}
		go func() { failed <- stream.readEvents(received) }()
	}
	fmt.Println("ready", time.Now().UnixNano())
	known := map[string]int{}
	for {
		select {
		case patient := <-received:
			if known[patient]++; known[patient] == count {
				fmt.Println(patient, time.Now().UnixNano())
			}
		case err := <-failed:
			return err
		}
	}
}

// subscribe opens a PocketBase realtime stream and subscribes to the triage topic.
func subscribe(ctx context.Context, addr, token string) (*client, error) {
	stream, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if _, err := stream.conn.Write(wire("GET", addr, "/api/realtime", "", nil)); err != nil {
		return nil, err
	}
	id := ""
	for id == "" {
		line, err := stream.in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("open a realtime stream: %w", err)
		}
		if data, ok := strings.CutPrefix(line, `data:{"clientId":"`); ok {
			id, _, _ = strings.Cut(data, `"`)
		}
	}
	status, refusal, err := exchange(ctx, addr, wire("POST", addr, "/api/realtime", token, fmt.Appendf(nil, `{"clientId":%q,"subscriptions":["triage"]}`, id)))
	if err != nil || status != 204 {
		return nil, fmt.Errorf("subscription answered %d: %s (%w)", status, refusal, err)
	}
	return stream, nil
}

// readEvents sends each patient to received once. It ignores the chunk headers of the transfer encoding between the lines.
func (c *client) readEvents(received chan<- string) error {
	known := map[string]bool{}
	name := []byte(`"patient_id":"`)
	for {
		line, err := c.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a realtime stream ended: %w", err)
		}
		_, rest, ok := bytes.Cut(line, name)
		if !ok {
			continue
		}
		patient, _, _ := bytes.Cut(rest, []byte(`"`))
		if !known[string(patient)] {
			known[string(patient)] = true
			received <- string(patient)
		}
	}
}
