package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/gateway"
)

func TestRejectionLog(t *testing.T) {
	var r gateway.RejectionLog
	start := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	first := func(address, reason string, since int) gateway.Rejection {
		return gateway.Rejection{Address: address, Reason: reason, Since: since}
	}
	for _, step := range []struct {
		after           time.Duration
		address, reason string
		due             []gateway.Rejection
	}{
		{0, "a", "x", []gateway.Rejection{first("a", "x", 0)}},
		{time.Second, "a", "x", nil},
		{time.Minute, "a", "y", []gateway.Rejection{first("a", "y", 0)}},
		{time.Minute, "b", "x", []gateway.Rejection{first("b", "x", 0)}},
		{59 * time.Minute, "a", "x", nil},
		{time.Hour, "a", "x", []gateway.Rejection{first("a", "x", 2)}},
		{time.Hour + 10*time.Second, "b", "x", nil},
		// The hour of b has ended, and c reports it; that of "a y" counted one and leaves nothing.
		{time.Hour + 2*time.Minute, "c", "x", []gateway.Rejection{{Address: "b", Reason: "x", Since: 1, WindowEnded: true}, first("c", "x", 0)}},
		{-48 * time.Hour, "c", "x", []gateway.Rejection{first("c", "x", 0)}}, // a clock set back suppresses nothing
	} {
		if due := r.Note(step.address, step.reason, start.Add(step.after)); !slices.Equal(due, step.due) {
			t.Errorf("%v after, %s %s: %+v, want %+v", step.after, step.address, step.reason, due, step.due)
		}
	}
	r.Unrecord(first("c", "x", 0))
	if due := r.Note("c", "x", start.Add(-48*time.Hour)); len(due) != 1 {
		t.Errorf("what could not be recorded is not tried again: %+v", due)
	}
}

// Any number of addresses makes a bounded number of records.
func TestRejectionLogIsBounded(t *testing.T) {
	var r gateway.RejectionLog
	start := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	records, counted := 0, 0
	for i := range 20_000 {
		for _, due := range r.Note(fmt.Sprint(i), "invalid_signature", start.Add(time.Duration(i)*time.Millisecond)) {
			records++
			counted += due.Since
		}
	}
	if records != 1025 {
		t.Errorf("%d records in a minute", records)
	}
	for _, due := range r.Note("0", "invalid_signature", start.Add(3*time.Hour)) {
		records++
		counted += due.Since
	}
	if records+counted != 20_001+1 { // each is recorded or counted, and the count of untracked addresses is a record of its own
		t.Errorf("%d recorded and %d counted", records, counted)
	}
}
