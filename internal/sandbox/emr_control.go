package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// Stats returns the counts so far.
func (e *EMR) Stats() EMRStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	stats := e.stats
	stats.Observations = len(e.observations)
	for _, same := range e.byIdentifier {
		stats.MostPerIdentifier = max(stats.MostPerIdentifier, len(same))
	}
	return stats
}

// Observations returns the stored observations, oldest first.
func (e *EMR) Observations() []StoredObservation {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]StoredObservation, 0, len(e.observations))
	for _, stored := range e.observations {
		list = append(list, e.countedCreates(stored))
	}
	return list
}

func (e *EMR) listObservations(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", e.Observations())
}

func (e *EMR) showStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", e.Stats())
}

// addFaults adds one rule or a list of rules.
func (e *EMR) addFaults(w http.ResponseWriter, r *http.Request) {
	var raw json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&raw); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	faults, err := readFaults(raw)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, fault := range faults {
		e.Fail(fault)
	}
	w.WriteHeader(http.StatusNoContent)
}

func readFaults(raw json.RawMessage) ([]Fault, error) {
	var faults []Fault
	if err := json.Unmarshal(raw, &faults); err != nil {
		var one Fault
		if json.Unmarshal(raw, &one) != nil {
			return nil, errors.New("want a fault rule or a list of fault rules")
		}
		faults = []Fault{one}
	}
	for i, fault := range faults {
		switch {
		case !slices.Contains([]string{"", DropBefore, DropAfter, DropHang}, fault.Drop):
			return nil, fmt.Errorf("rule %d: drop is before, after or hang", i)
		case !slices.Contains([]string{"", AnswerHTML, AnswerHalf, AnswerRedirect, AnswerNoExpiry}, fault.Answer):
			return nil, fmt.Errorf("rule %d: answer is html, half, redirect or no_expiry", i)
		case fault.Percent < 0 || fault.Percent > 100:
			return nil, fmt.Errorf("rule %d: percent is 0 to 100", i)
		case !slices.Contains([]string{"", TokenExpired}, fault.Token):
			return nil, fmt.Errorf("rule %d: token is expired", i)
		case fault.Status != 0 && (fault.Status < 400 || fault.Status > 599):
			return nil, fmt.Errorf("rule %d: status is 400 to 599", i)
		case fault.Times < 0 || fault.DelayMS < 0 || fault.RetryAfter < 0:
			return nil, fmt.Errorf("rule %d: times, delay_ms and retry_after are not negative", i)
		}
	}
	return faults, nil
}

// countStray handles the target of redirects, which a careful client never requests.
func (e *EMR) countStray(w http.ResponseWriter, _ *http.Request) {
	e.count(func(s *EMRStats) { s.Strays++ })
	w.WriteHeader(http.StatusNoContent)
}

func (e *EMR) clearFaults(w http.ResponseWriter, _ *http.Request) {
	e.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

// journal stores observations, one JSON line each, in a file only its owner may read.
type journal struct{ file *os.File }

type journalLine struct {
	ReceivedAt time.Time       `json:"received_at"`
	Resource   json.RawMessage `json:"resource"`
}

// append writes one line; without a journal it does nothing.
func (j *journal) append(line journalLine) error {
	if j == nil {
		return nil
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a journal line: %w", err)
	}
	if _, err := j.file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// openJournal reads the observations of an earlier run. A last line truncated by a crash is removed: it was never answered, so its sender
// will send it again.
func (e *EMR) openJournal(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	whole, err := e.replay(bufio.NewReader(file))
	if err == nil {
		err = file.Truncate(whole)
	}
	if err == nil {
		_, err = file.Seek(whole, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first error matters
		return fmt.Errorf("read the journal: %w", err)
	}
	e.journal = &journal{file}
	return nil
}

// replay reads every whole line and returns their size in bytes.
func (e *EMR) replay(lines *bufio.Reader) (int64, error) {
	var whole int64
	for {
		raw, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		whole += int64(len(raw))
		var line journalLine
		var observation struct {
			ID string `json:"id"`
			observationBody
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(line.Resource, &observation); err != nil {
			return 0, err
		}
		if refused := observation.check(); refused != nil {
			return 0, fmt.Errorf("line holds no observation: %s", refused.diagnostics)
		}
		e.addVersion(observation.ID, observation.observationBody, line.Resource, line.ReceivedAt)
	}
}
