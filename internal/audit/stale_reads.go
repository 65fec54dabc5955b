package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// StaleReads appends reads to a file while the process may not write its database. Its lines have ids only, and belong to the access record.
type StaleReads struct {
	path string
	mu   sync.Mutex
}

// NewStaleReads returns the file at a path; it is created with the first read.
func NewStaleReads(path string) *StaleReads { return &StaleReads{path: path} }

// staleRead is one line.
type staleRead struct {
	RecordedAt   time.Time `json:"recorded_at"`
	Event        Event     `json:"event"`
	ActorType    ActorType `json:"actor_type"`
	ActorID      string    `json:"actor_id"`
	Address      string    `json:"address"`
	RequestID    string    `json:"request_id"`
	ResourceType string    `json:"resource_type"`
	ResourceID   string    `json:"resource_id"`
	PatientID    string    `json:"patient_id,omitempty"`
	PatientIDs   any       `json:"patient_ids,omitempty"`
}

// Append returns when the read is on the disk.
func (s *StaleReads) Append(e Entry, now time.Time) error {
	line, err := json.Marshal(staleRead{
		now, e.Event, e.Actor.Type, e.Actor.ID, e.Actor.Origin.Address, e.Actor.Origin.RequestID, e.ResourceType, e.ResourceID, e.PatientID, e.Changes["patient_ids"].New,
	})
	if err != nil {
		return fmt.Errorf("encode a read: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file of reads: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("record a read: %w", err)
	}
	return nil
}
