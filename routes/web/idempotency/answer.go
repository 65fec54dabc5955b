package idempotency

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Answer is the stored response to a request. It refuses to print.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
	// Rights are the caller's at the time of the answer. Patients are those that the caller needed access to.
	Rights   string
	Patients []string
}

// Format prints a placeholder in place of the answer.
func (Answer) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[answer]") }

// LogValue logs a placeholder in place of the answer.
func (Answer) LogValue() slog.Value { return slog.StringValue("[answer]") }

// answerHead is the first line of a stored answer; the body follows it.
type answerHead struct {
	Status   int               `json:"status"`
	Header   map[string]string `json:"header,omitempty"`
	Rights   string            `json:"rights"`
	Patients []string          `json:"patients,omitempty"`
}

func (a Answer) encode() (string, error) {
	first, err := json.Marshal(answerHead{a.Status, a.Header, a.Rights, a.Patients})
	if err != nil {
		return "", fmt.Errorf("store an answer: %w", err)
	}
	return string(first) + "\n" + string(a.Body), nil
}

// decode parses the result of encode; it returns nil for anything else.
func decode(text string) *Answer {
	first, body, ok := strings.Cut(text, "\n")
	var h answerHead
	if !ok || json.Unmarshal([]byte(first), &h) != nil || h.Status == 0 {
		return nil
	}
	return &Answer{h.Status, h.Header, []byte(body), h.Rights, h.Patients}
}
