package billing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Before the first run, the entries of the oracle are unbilled, with days or minutes and the amount; after it, none that could be billed.
func TestUnbilled(t *testing.T) {
	p := plantPractice(t, 500, 40)
	before, err := p.engine.Unbilled(p.app, billing.UnbilledFilter{}, p.end)
	if err != nil {
		t.Fatal(err)
	}
	for patient, c := range p.cases {
		if want, got := expected(c, p.end, p.zone), linesOf(before, patient); !slices.Equal(want, got) {
			t.Fatalf("patient %s:\noracle: %v\nunbilled: %v", patient, want, got)
		}
	}
	checkFilters(t, p.app, p.engine, before, p.end)
	p.run(t, billing.AllJobs, p.end)
	after, err := p.engine.Unbilled(p.app, billing.UnbilledFilter{}, p.end)
	if err != nil || slices.ContainsFunc(after, func(u billing.Unbilled) bool {
		return u.Reason == billing.NotBilledYet || u.TransmissionDays != nil && *u.TransmissionDays >= earns(u.CPTCode)
	}) {
		t.Errorf("after a run unbilled is %v: %v", after, err)
	}
}

// An unexpected record fails the search without stopping the service.
func TestUnbilledPanic(t *testing.T) {
	p := plantPractice(t, 500, 2)
	if _, err := p.app.DB().NewQuery(`UPDATE time_entries SET id = 'Mummel;see' || id`).Execute(); err != nil {
		t.Fatal(err)
	}
	list, err := p.engine.Unbilled(p.app, billing.UnbilledFilter{}, p.end)
	if err == nil || list != nil || !strings.Contains(err.Error(), "panicked (runtime.boundsError)") || strings.Contains(err.Error(), "Mummel") {
		t.Errorf("%d are unbilled: %v", len(list), err)
	}
}

// expected returns the oracle's lines for ended periods, except set-ups, which wait for a supply without blocking reasons.
func expected(c oracleCase, end time.Time, practice *time.Location) (lines []string) {
	for _, line := range oracleEntries(c, end) {
		f := strings.Fields(line) // code start end service units minutes cents days
		if f[0] == "99453" || f[2] >= end.In(practice).Format(oracleDay) {
			continue
		}
		lines = append(lines, fmt.Sprintln(f[0], f[1], f[2], f[5], f[6], f[7]))
	}
	slices.Sort(lines)
	return lines
}

// earns returns the number of days that a device code requires.
func earns(code string) int {
	if code == "99445" {
		return 2
	}
	return 16
}

// linesOf returns device periods with any reason, and time without blocking reasons.
func linesOf(list []billing.Unbilled, patient string) (lines []string) {
	for _, u := range list {
		if u.PatientID != patient || u.CPTCode == billing.Setup || u.TransmissionDays == nil && u.Reason != billing.NotBilledYet {
			continue
		}
		if u.TransmissionDays != nil && *u.TransmissionDays < earns(u.CPTCode) {
			continue // what the period would earn with consent
		}
		minutes, days := 0, -1
		if u.Minutes != nil {
			minutes = *u.Minutes
		}
		if u.TransmissionDays != nil {
			days = *u.TransmissionDays
		}
		lines = append(lines, fmt.Sprintln(u.CPTCode, u.PeriodStart, u.PeriodEnd, minutes, int64(u.EstimatedAmount), days))
	}
	slices.Sort(lines)
	return lines
}

func checkFilters(t *testing.T, app core.App, engine *billing.Engine, all []billing.Unbilled, now time.Time) {
	t.Helper()
	patient, none, payer := all[0].PatientID, "", "000000000000001"
	for what, f := range map[string]billing.UnbilledFilter{
		"a patient": {PatientID: patient}, "a code": {CPTCode: billing.FirstTwenty}, "dates": {From: "2026-04-15", To: "2026-08-20"},
		"a provider": {Provider: &payer}, "self-pay": {Payer: &none}, "a payer": {Payer: &payer},
	} {
		some, err := engine.Unbilled(app, f, now)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(u billing.Unbilled) bool {
			return f.PatientID != "" && u.PatientID != f.PatientID || f.CPTCode != "" && u.CPTCode != f.CPTCode ||
				f.From != "" && (u.PeriodEnd < f.From || u.PeriodEnd > f.To) || f.Provider != nil
		})
		if f.Payer == nil && f.From == "" && len(some) != len(want) {
			t.Errorf("of %s %d are unbilled, not %d", what, len(some), len(want))
		}
		for _, u := range some {
			if f.Payer == nil && u.CPTCode != billing.Setup && !slices.ContainsFunc(want, func(w billing.Unbilled) bool {
				return w.PatientID == u.PatientID && w.CPTCode == u.CPTCode && w.PeriodEnd == u.PeriodEnd && w.EstimatedAmount == u.EstimatedAmount
			}) {
				t.Errorf("of %s %+v is unbilled only there", what, u)
			}
		}
	}
	self, err := engine.Unbilled(app, billing.UnbilledFilter{Payer: &none}, now)
	if err != nil {
		t.Fatal(err)
	}
	insured, err := engine.Unbilled(app, billing.UnbilledFilter{Payer: &payer}, now)
	if err != nil || len(self) == 0 || len(insured) == 0 || len(self)+len(insured) != len(all) {
		t.Errorf("%d and %d of %d: %v", len(self), len(insured), len(all), err)
	}
}
