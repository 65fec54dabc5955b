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

// subscribers is how many browsers look at the list.
const subscribers = 1000

// live measures how long it takes until the last of a thousand subscribers has heard of a reading, and how much of the rate of
// ingestion is left while they all listen. The subscribers are another process on the same machine.
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
	crowd, err := gather(ctx, b, candidate)
	if err != nil {
		return err
	}
	defer crowd.leave()
	var heard []time.Duration
	for i := range 10 * p.rounds {
		patient, sent := candidate.patients[i], time.Now()
		body := fmt.Sprintf(`{"patient_id":"%s","systolic":%d,"diastolic":95,"pulse":70,"measured_at":"%s"}`, patient, 160+i, sent.UTC().Format(time.RFC3339))
		if _, status, answer, err := candidate.once(ctx, "POST", "/api/v1/ingestion/blood-pressure/", body); err != nil || status != 201 {
			return fmt.Errorf("reading answered %d: %s (%w)", status, answer, err)
		}
		last, err := crowd.await(patient)
		if err != nil {
			return err
		}
		heard = append(heard, last.Sub(sent))
	}
	told := summarise(heard, 0, time.Second)
	t.add(row{
		path: "live event, last of 1,000 told", clients: subscribers, figures: figures{p50: told.p50, p95: told.p95, p99: told.p99, max: told.max},
		value: told.max.Seconds(), unit: "s", aim: aim{2, .3}, note: fmt.Sprintf("from before the reading was sent; %d readings; worst", len(heard)),
	})
	before := to.accepted.Load()
	listened, err := pressRounds(ctx, p, to, l)
	if err != nil {
		return err
	}
	if to.accepted.Load() == before {
		return errors.New("nothing was stored while they listened")
	}
	crowd.leave()
	after, err := pressRounds(ctx, p, to, l)
	if err != nil {
		return err
	}
	// A database that grows is slower: what was done in between is held against the middle of before and after.
	first, last := alone.perSecond, after.perSecond
	alone.perSecond, alone.p50 = (first+last)/2, (alone.p50+after.p50)/2
	t.add(row{
		path: "ingest while 1,000 listen", clients: l.clients, figures: listened, against: "nobody listens", other: alone,
		value: 100 * byThroughput(listened, alone), unit: "%", aim: aim{80, 95},
		note: fmt.Sprintf("the listeners' own work on the same cores included; %.0f before, %.0f after", first, last),
	})
	return candidate.checkStored(to.accepted.Load() + int64(len(heard)))
}

// pressRounds is the median of all rounds.
func pressRounds(ctx context.Context, p plan, to *target, l load) (figures, error) {
	rounds, err := race(ctx, p, l, to)
	if err != nil {
		return figures{}, err
	}
	return median(slices.Concat(rounds...)), nil
}

// crowd is the process with the subscribers.
type crowd struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func gather(ctx context.Context, b built, s *server) (*crowd, error) {
	c := &crowd{cmd: exec.CommandContext(ctx, b.self, "listen", s.addr, strconv.Itoa(subscribers))}
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

// await returns when all subscribers had heard of something, by the clock of this machine.
func (c *crowd) await(what string) (time.Time, error) {
	for c.lines.Scan() {
		heard, at, _ := strings.Cut(c.lines.Text(), " ")
		if heard != what {
			continue
		}
		nanoseconds, err := strconv.ParseInt(at, 10, 64)
		return time.Unix(0, nanoseconds), err
	}
	return time.Time{}, fmt.Errorf("the subscribers ended: %w", errors.Join(c.lines.Err(), errors.New("no more lines")))
}

func (c *crowd) leave() {
	_ = c.cmd.Process.Kill() // it may be gone already
	_ = c.cmd.Wait()         // killed
}

// listen is the other process: it subscribes so many times, and writes a line with the time when all have heard of a patient
// for the first time.
func listen(args []string) error {
	addr, token := args[0], os.Getenv("BENCH_TOKEN")
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	heard, failed := make(chan string, 1<<16), make(chan error, count)
	ctx := context.Background()
	for range count {
		stream, err := subscribe(ctx, addr, token)
		if err != nil {
			return err
		}
		go func() { failed <- stream.follow(heard) }()
	}
	fmt.Println("ready", time.Now().UnixNano())
	known := map[string]int{}
	for {
		select {
		case patient := <-heard:
			if known[patient]++; known[patient] == count {
				fmt.Println(patient, time.Now().UnixNano())
			}
		case err := <-failed:
			return err
		}
	}
}

// subscribe opens a stream of PocketBase's and asks for the topic.
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
			return nil, fmt.Errorf("open a stream: %w", err)
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

// follow tells of each patient once. Frames of the chunked transfer lie between the lines and mean nothing here.
func (c *client) follow(heard chan<- string) error {
	known := map[string]bool{}
	name := []byte(`"patient_id":"`)
	for {
		line, err := c.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a stream ended: %w", err)
		}
		_, rest, ok := bytes.Cut(line, name)
		if !ok {
			continue
		}
		patient, _, _ := bytes.Cut(rest, []byte(`"`))
		if !known[string(patient)] {
			known[string(patient)] = true
			heard <- string(patient)
		}
	}
}
