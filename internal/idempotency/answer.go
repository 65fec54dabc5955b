package idempotency

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Answer is what a caller was answered. It refuses to print.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
	// Rights are what the caller had when it was given, and Patients whom the caller had to be let at.
	Rights   string
	Patients []string
}

// Format shows nothing of the answer.
func (Answer) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[answer]") }

// LogValue shows nothing of the answer.
func (Answer) LogValue() slog.Value { return slog.StringValue("[answer]") }

// head is what is kept of an answer before its body, on a line of its own.
type head struct {
	Status   int               `json:"status"`
	Header   map[string]string `json:"header,omitempty"`
	Rights   string            `json:"rights"`
	Patients []string          `json:"patients,omitempty"`
}

func (a Answer) encode() (string, error) {
	first, err := json.Marshal(head{a.Status, a.Header, a.Rights, a.Patients})
	if err != nil {
		return "", fmt.Errorf("store an answer: %w", err)
	}
	return string(first) + "\n" + string(a.Body), nil
}

// decode reads what encode wrote; nil for anything else.
func decode(text string) *Answer {
	first, body, ok := strings.Cut(text, "\n")
	var h head
	if !ok || json.Unmarshal([]byte(first), &h) != nil || h.Status == 0 {
		return nil
	}
	return &Answer{h.Status, h.Header, []byte(body), h.Rights, h.Patients}
}
