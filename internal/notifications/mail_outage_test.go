package notifications

import (
	"bytes"
	"errors"
	"log/slog"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// The log has one line when the mail server goes down and one when it is back. Failures of a single mail log neither.
func TestMailOutageIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log, outage, now := slog.New(slog.NewTextHandler(&out, nil)), mailOutage{}, time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	unreachable, refused := errors.New("dial tcp: refused"), func(code int) error { return &textproto.Error{Code: code, Msg: "ann@example.org"} }
	for _, step := range []struct {
		failure    error
		down, back int
	}{
		{nil, 0, 0},
		{refused(550), 0, 0},
		{errUnfillable, 0, 0},
		{errNotConfigured, 0, 0},
		{unreachable, 1, 0},
		{errTimeout, 1, 0},
		{refused(421), 1, 0},
		{errUnreadable, 1, 0},
		{nil, 1, 1},
		{nil, 1, 1},
		{refused(535), 2, 1},
		{refused(550), 2, 2},
		{errTimeout, 3, 2},
	} {
		outage.record(step.failure, now, log)
		now = now.Add(time.Minute)
		down, back := strings.Count(out.String(), "the mail server is down"), strings.Count(out.String(), "the mail server is back")
		if down != step.down || back != step.back {
			t.Fatalf("after %v: %d down, %d back, want %d and %d\n%s", step.failure, down, back, step.down, step.back, out.String())
		}
	}
	if strings.Contains(out.String(), "ann@") {
		t.Error("the log contains the server's reply")
	}
}
