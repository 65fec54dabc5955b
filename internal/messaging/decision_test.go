package messaging

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestRefusal(t *testing.T) {
	fine := Recipient{Active: true, Consent: true, Wanted: collections.Channels{SMS: true}, Phone: "(212) 555-0123"}
	for name, c := range map[string]struct {
		change           func(*Recipient)
		automatic, staff string
	}{
		"nothing":          {func(*Recipient) {}, "", ""},
		"archived or dead": {func(r *Recipient) { r.Active = false }, ReasonArchived, ReasonArchived},
		"without consent":  {func(r *Recipient) { r.Consent = false }, ReasonNoConsent, ReasonNoConsent},
		"stopped":          {func(r *Recipient) { r.StoppedAt = time.Unix(1, 0) }, ReasonStopped, ReasonStopped},
		"stopped, consent": {func(r *Recipient) { r.StoppedAt, r.Consent = time.Unix(1, 0), false }, ReasonStopped, ReasonStopped},
		"wants no text":    {func(r *Recipient) { r.Wanted = collections.Channels{Voice: true} }, ReasonChannelOff, ReasonChannelOff},
		"without phone":    {func(r *Recipient) { r.Phone = "" }, ReasonNoPhone, ReasonNoPhone},
		"extension":        {func(r *Recipient) { r.Phone = "212-555-0123 x9" }, ReasonNoPhone, ReasonNoPhone},
		"on hold":          {func(r *Recipient) { r.OnHold = true }, ReasonHold, ""},
	} {
		r := fine
		c.change(&r)
		if got := r.SuppressionReason(collections.ChannelSMS, true); got != c.automatic {
			t.Errorf("%s: automatic %q, want %q", name, got, c.automatic)
		}
		if got := r.SuppressionReason(collections.ChannelSMS, false); got != c.staff {
			t.Errorf("%s: staff %q, want %q", name, got, c.staff)
		}
	}
	if got := fine.SuppressionReason(collections.ChannelVoice, false); got != ReasonChannelOff {
		t.Errorf("a call that the patient does not want: %q", got)
	}
}

func TestDialable(t *testing.T) {
	for stored, want := range map[phi.Text]phi.Text{
		"(212) 555-0123": "+12125550123", "212.555.0123": "+12125550123", "1 212 555 0123": "+12125550123", "+1 212-555-0123": "+12125550123",
		"+52 55 1234 5678": "+525512345678", " +4915112345678 ": "+4915112345678",
		"+44 (0)7700 900009": "+447700900009", "+44(0)7700900009": "+447700900009", "+39 (0)6 1234 5678": "+390612345678", "+1 (0)212-555-0123": "+12125550123",
		"": "", "555-0123": "", "212-555-0123 x4": "", "+1234": "", "+0123456789": "", "112 555 0123": "", "22 212 555 0123": "", "+1234567890123456": "",
	} {
		if got, ok := Dialable(stored); got != want || ok != (want != "") {
			t.Errorf("%s: %s, %v", stored.Reveal(), got.Reveal(), ok)
		}
	}
}

// A day and a week are the patient's: a message at 11 p.m. in Honolulu is of that day, though it is the next one in New York.
func TestLimits(t *testing.T) {
	honolulu, now := zone(t, "Pacific/Honolulu"), at(t, "2026-03-10T20:00:00Z") // 10 a.m. of March 10
	for name, c := range map[string]struct {
		sent []string
		want string
	}{
		"none":                       {nil, ""},
		"yesterday evening":          {[]string{"2026-03-10T09:59:00Z"}, ""},
		"this morning":               {[]string{"2026-03-10T10:00:00Z"}, ReasonDailyLimit},
		"three in the last six days": {[]string{"2026-03-09T20:00:00Z", "2026-03-08T20:00:00Z", "2026-03-04T10:00:00Z"}, ReasonWeeklyLimit},
		"the third a minute before":  {[]string{"2026-03-09T20:00:00Z", "2026-03-08T20:00:00Z", "2026-03-04T09:59:00Z"}, ""},
		"two this week and older":    {[]string{"2026-03-09T20:00:00Z", "2026-03-08T20:00:00Z", "2026-02-01T20:00:00Z", "2026-01-01T20:00:00Z"}, ""},
		"a clock that was set back":  {[]string{"2026-03-12T20:00:00Z"}, ReasonDailyLimit},
	} {
		var sent []time.Time
		for _, text := range c.sent {
			sent = append(sent, at(t, text))
		}
		if got := LimitReached(sent, now, honolulu); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestHours(t *testing.T) {
	h, err := ParseHours("08:00-21:00")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ zone, at, next string }{
		{"America/New_York", "2026-01-15T12:59:59Z", "2026-01-15T13:00:00Z"}, // 7:59 a.m.
		{"America/New_York", "2026-01-15T13:00:00Z", "2026-01-15T13:00:00Z"},
		{"America/New_York", "2026-01-16T01:59:59Z", "2026-01-16T01:59:59Z"}, // 8:59 p.m.
		{"America/New_York", "2026-01-16T02:00:00Z", "2026-01-16T13:00:00Z"}, // 9 p.m.
		{"Pacific/Honolulu", "2026-01-16T02:00:00Z", "2026-01-16T02:00:00Z"}, // 4 p.m.
		{"America/New_York", "2026-03-08T03:00:00Z", "2026-03-08T12:00:00Z"}, // the night with 23 hours
		{"America/New_York", "2026-11-01T03:00:00Z", "2026-11-01T13:00:00Z"}, // the night with 25 hours
		{"Asia/Kathmandu", "2026-01-15T00:00:00Z", "2026-01-15T02:15:00Z"},
	} {
		z := zone(t, c.zone)
		if got := h.Next(at(t, c.at), z); !got.Equal(at(t, c.next)) || h.Include(at(t, c.at), z) != (c.at == c.next) {
			t.Errorf("%s %s: %s, want %s", c.zone, c.at, got.UTC().Format(time.RFC3339), c.next)
		}
	}
	night, err := ParseHours("02:00-03:00")
	if err != nil {
		t.Fatal(err)
	}
	if got := night.Next(at(t, "2026-03-08T05:00:00Z"), zone(t, "America/New_York")); !got.After(at(t, "2026-03-08T05:00:00Z")) {
		t.Errorf("the hour that the clock skips: %s", got)
	}
	for _, text := range []string{"", "8-21", "08:00", "21:00-08:00", "08:00-08:00", "08:00-25:00", "08:60-09:00", "08:00 - 21:00", "24:00-24:00"} {
		if _, err := ParseHours(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := ParseHours("00:00-24:00"); err != nil {
		t.Error(err)
	}
}
