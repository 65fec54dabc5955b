package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// Observations returns what is stored, oldest first.
func (e *EMR) Observations() []StoredObservation {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]StoredObservation, 0, len(e.observations))
	for _, stored := range e.observations {
		list = append(list, e.withCreates(stored))
	}
	return list
}

func (e *EMR) listObservations(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", e.Observations())
}

func (e *EMR) showStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", e.Stats())
}

// addFaults takes one rule or a list of rules.
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

// noteStray is where redirects lead; a careful client never comes here.
func (e *EMR) noteStray(w http.ResponseWriter, _ *http.Request) {
	e.count(func(s *EMRStats) { s.Strays++ })
	w.WriteHeader(http.StatusNoContent)
}

func (e *EMR) clearFaults(w http.ResponseWriter, _ *http.Request) {
	e.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}
