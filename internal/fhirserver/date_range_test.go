package fhirserver

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

var eastern = time.FixedZone("EST", -5*3600)

// A date covers the period from its start to the next date of the same precision.
func TestParseDate(t *testing.T) {
	for text, want := range map[string][2]string{
		"2026":                           {"2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},
		"2026-02":                        {"2026-02-01T05:00:00Z", "2026-03-01T05:00:00Z"},
		"2026-12-31":                     {"2026-12-31T05:00:00Z", "2027-01-01T05:00:00Z"},
		"2024-02-29":                     {"2024-02-29T05:00:00Z", "2024-03-01T05:00:00Z"},
		"2026-01-02T03:04":               {"2026-01-02T08:04:00Z", "2026-01-02T08:05:00Z"},
		"2026-01-02T03:04Z":              {"2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z"},
		"2026-01-02T03:04:59+05:30":      {"2026-01-01T21:34:59Z", "2026-01-01T21:35:00Z"},
		"2026-01-02T03:04:05 02:00":      {"2026-01-02T01:04:05Z", "2026-01-02T01:04:06Z"},
		"2026-01-02T03:04:05.1Z":         {"2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.2Z"},
		"2026-01-02T03:04:05.123456Z":    {"2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123457Z"},
		"2026-01-02T03:04:05.123456789Z": {"2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123457Z"},
	} {
		from, until, ok := parseDate(text, eastern)
		if got := [2]string{from.UTC().Format(time.RFC3339Nano), until.UTC().Format(time.RFC3339Nano)}; !ok || got != want {
			t.Errorf("%s is parsed as %v (%v)", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "26", "2026-1", "2026-00", "2026-13", "2026-02-29", "2026-01-01T", "2026-01-01T10", "2026-01-01T25:00", "2026-01-01T10:61", "2026-01-01 10:00", "2026-01-01T10:00+5",
		"20260101", "2026-01-01Z", "eq2026", "2026-01-01T10:00:00.Z", "2026-01-01T10:00:00.1234567890Z", " 2026", "2026\n",
	} {
		if _, _, ok := parseDate(text, eastern); ok {
			t.Errorf("%q is accepted as a date", text)
		}
	}
}

// Each prefix matches the instants that FHIR defines: before, at the start, within, at the end and after.
func TestDatePrefixes(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	moments := []time.Time{
		time.Date(2026, 1, 9, 23, 59, 59, 0, time.UTC), time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC),
		time.Date(2026, 1, 10, 23, 59, 59, 0, time.UTC), time.Date(2026, 1, 11, 0, 0, 0, 0, time.UTC),
	}
	for prefix, want := range map[string]string{
		"": "-+++-", "eq": "-+++-", "ne": "+---+", "gt": "----+", "sa": "----+", "ge": "-++++", "lt": "+----", "eb": "+----", "le": "++++-", "ap": "+++++",
	} {
		s, ok := parseTimeRange(prefix+"2026-01-10", time.UTC, now)
		if !ok {
			t.Fatal(prefix)
		}
		got := ""
		for _, at := range moments {
			got += map[bool]string{true: "+", false: "-"}[inRange(s, at)]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", prefix, got, want)
		}
	}
	near, _ := parseTimeRange("ap2026-01-10", time.UTC, now) // 50 days ago: widened by 5 days on each side
	if inRange(near, time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC)) || !inRange(near, time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("approximate range is %v", near)
	}
}

func TestParseNumberRange(t *testing.T) {
	for text, want := range map[string]string{
		"140": "[139.5 140.5)", "140.0": "[139.95 140.05)", "1.4e2": "[135 145)", "-1": "[-1.5 -0.5)", "ne140": "not [139.5 140.5)", "gt140": "(140 ", "ge140": "[140 ",
		"lt140": " 140)", "le140": " 140]", "sa140": "(140 ", "eb140": " 140)", "ap100": "[90 110]",
	} {
		b, ok := parseNumberRange(text)
		if got := written(b); !ok || got != want {
			t.Errorf("%s is parsed as %s (%v), want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "0x10", "Inf", "NaN", "1_000", "gt", "1e", "--1", "1,2"} {
		if _, ok := parseNumberRange(text); ok {
			t.Errorf("%q is accepted as a number", text)
		}
	}
}

func written(b collections.ValueRange) (text string) {
	end := func(v *float64) string {
		if v == nil {
			return ""
		}
		return trimmed(*v)
	}
	if b.Outside {
		text = "not "
	}
	if b.From != nil {
		text += map[bool]string{true: "[", false: "("}[b.FromIncluded]
	}
	text += end(b.From) + " " + end(b.To)
	if b.To != nil {
		text += map[bool]string{true: "]", false: ")"}[b.ToIncluded]
	}
	return text
}
