package billing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
)

const (
	once     = billing.FrequencyLimit
	excluded = billing.ExcludedPair
	doubtful = billing.PossibleDuplicate
)

// pairs are all pairs of billable codes with the same patient and period: refused for these reasons, or both billed. The first is reviewed.
var pairs = []struct {
	first, second string
	reasons       []string
	source        string
}{
	{"99453", "99453", []string{once}, "CPT 2026: 99453 once per episode of care"},
	{"99453", "99454", nil, "CPT 2026: the set-up and the supply are reported separately"},
	{"99453", "99445", nil, "CPT 2026: 99453 with 2 or more days of monitoring"},
	{"99453", "99457", nil, "CPT 2026: the set-up is no part of treatment management"},
	{"99453", "99458", nil, "as 99457"},
	{"99453", "99470", nil, "as 99457"},
	{"99453", "99091", nil, "CPT 2026: no exclusion"},
	{"99454", "99454", []string{once}, "85 FR 84472 (CMS CY 2021): once in 30 days, for any number of devices"},
	{"99454", "99445", []string{excluded, once}, "CMS CY 2026 final rule: 99445 and 99454 are not additive"},
	{"99454", "99457", nil, "CPT 2026: supply and management are separate services"},
	{"99454", "99458", nil, "as 99457"},
	{"99454", "99470", nil, "as 99457"},
	{"99454", "99091", nil, "CPT 2026: no exclusion"},
	{"99445", "99445", []string{once}, "CMS CY 2026 final rule: once in 30 days"},
	{"99445", "99457", nil, "as 99454"},
	{"99445", "99458", nil, "as 99454"},
	{"99445", "99470", nil, "as 99454"},
	{"99445", "99091", nil, "as 99454"},
	{"99457", "99457", []string{once}, "CPT 2026: once each calendar month"},
	{"99457", "99458", nil, "CPT 2026: 99458 is an add-on of 99457"},
	{"99457", "99470", []string{excluded, once}, "CMS CY 2026 final rule: 99470 or 99457"},
	{"99457", "99091", nil, "85 FR 84472 (CMS CY 2021): both, with separate time"},
	{"99458", "99458", []string{doubtful}, "CPT 2026: each additional 20 minutes"},
	{"99458", "99470", []string{excluded}, "CPT 2026: 99458 is an add-on of 99457, which excludes 99470"},
	{"99458", "99091", nil, "as 99457"},
	{"99470", "99470", []string{once}, "CPT 2026: once each calendar month"},
	{"99470", "99091", nil, "as 99457"},
	{"99091", "99091", []string{once}, "CPT 2026: each 30 days"},
}

// reasonsOf returns the reasons of a refusal, sorted.
func reasonsOf(err error) []string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nil
	}
	list, _ := f.Extra["errors"].([]billing.ReasonDetail)
	codes := make([]string, len(list))
	for i, r := range list {
		codes[i] = r.Code
	}
	slices.Sort(codes)
	return codes
}

// supported returns a patient with facts that support both codes, with a provider.
func (d *fixture) supported(codes ...string) string {
	d.t.Helper()
	days, minutes := 10, 60
	if slices.Contains(codes, billing.DeviceSupply) {
		days = 20
	}
	if slices.Contains(codes, billing.FirstTen) {
		minutes = 10
	}
	provider := d.provider()
	start := at("2026-01-05 00:00").Add(time.Duration(d.planted) * time.Hour) // the nurse talks with one patient at a time
	patient := d.patient(wears("2026-01-01", "", "2026-01-01", days), taught("2026-01-02"), talked(start.In(newYork).Format("2006-01-02 15:04"), minutes))
	d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": provider.Id, "p": patient})
	d.insert(patient, logRow{provider.Id, "interpretation", "", "manual", at("2026-01-07 09:00"), 3600})
	return patient
}

// Every pair of codes in the same period is refused with its reasons, at creation by hand or at review, or billed. No reason lifts a limit.
func TestPairsOfCodes(t *testing.T) {
	d := newFixture(t, newCodes)
	claimed := map[string]int{billing.FirstTwenty: 20, billing.NextTwenty: 20, billing.FirstTen: 10, billing.Interpretation: 30}
	seen := map[string]bool{}
	for _, p := range pairs {
		name := p.first + " and " + p.second
		seen[p.first+p.second], seen[p.second+p.first] = true, true
		for _, order := range [][2]string{{p.first, p.second}, {p.second, p.first}} {
			codes := order[:]
			if slices.Contains(p.reasons, excluded) {
				codes = order[:1]
			}
			patient := d.supported(codes...)
			bill := func(code, override string) (reasons []string) {
				entry, err := d.manual(patient, code, "2026-01-20", claimed[code], "2026-02-10 09:00")
				if err == nil {
					_, err = d.e.ApplyTransition(d.app, entry.Id, d.e.Review(d.by, "", override, false, changesTime), d.by, changesTime)
				}
				return reasonsOf(err)
			}
			if slices.Contains(order[:], billing.NextTwenty) && !slices.Contains(order[:], billing.FirstTwenty) && !slices.Contains(order[:], billing.FirstTen) {
				if got := bill(billing.FirstTwenty, ""); len(got) > 0 {
					t.Fatalf("%s: the primary code is refused for %v", name, got)
				}
			}
			if order[0] == billing.NextTwenty && order[1] != billing.NextTwenty && (order[1] == billing.FirstTwenty || order[1] == billing.FirstTen) {
				continue // the add-on never comes first
			}
			if got := bill(order[0], ""); len(got) > 0 {
				t.Errorf("%s: the first, %s, is refused for %v", name, order[0], got)
			}
			override := "Another program"
			if slices.Equal(p.reasons, []string{doubtful}) {
				override = ""
			}
			got := slices.DeleteFunc(bill(order[1], override), func(r string) bool {
				return len(p.reasons) > 0 && !slices.Contains([]string{once, excluded, doubtful}, r)
			})
			if !slices.Equal(got, p.reasons) {
				t.Errorf("%s: refused for %v, want %v (%s)", name, got, p.reasons, p.source)
			}
			if override == "" {
				if got := bill(order[1], "Forty more minutes"); len(got) > 0 {
					t.Errorf("%s: with a reason refused for %v", name, got)
				}
			}
		}
	}
	for _, a := range d.e.Codes() {
		for _, b := range d.e.Codes() {
			if !seen[a+b] {
				t.Errorf("%s and %s are not in the table", a, b)
			}
		}
	}
}

// Codes made by hand have the same bounds, above as below.
func TestUpperBounds(t *testing.T) {
	d := newFixture(t, newCodes)
	short := d.patient(wears("2026-01-01", "", "2026-01-01", 16))
	entry := d.made(short, billing.ShortSupply, "2026-01-20", 0, "2026-02-10 09:00")
	_, err := d.e.ApplyTransition(d.app, entry.Id, d.e.Review(d.by, "", "Really", false, changesTime), d.by, changesTime)
	d.want("sixteen days", fmt.Sprint(reasonsOf(err)), "[days_above_maximum]")
	ten := d.patient(talked("2026-01-05 09:00", 20))
	entry = d.made(ten, billing.FirstTen, "2026-01-20", 10, "2026-02-10 09:00")
	_, err = d.e.ApplyTransition(d.app, entry.Id, d.e.Review(d.by, "", "Really", false, changesTime), d.by, changesTime)
	d.want("twenty minutes", fmt.Sprint(reasonsOf(err)), "[minutes_above_maximum]")
	_, err = d.manual(ten, billing.FirstTen, "2026-01-20", 20, "2026-02-10 09:00")
	d.want("twenty minutes claimed", fmt.Sprint(reasonsOf(err)), "[minutes_above_maximum]")
}

// A limit reviewed before it existed is refused when it is submitted; a denied entry may be billed again by another one, with a reason.
func TestLimitsAtSubmission(t *testing.T) {
	d := newFixture(t, newCodes)
	patient := d.supported(billing.DeviceSupply)
	first, second := d.made(patient, billing.DeviceSupply, "2026-01-20", 0, "2026-02-10 09:00"), d.made(patient, billing.DeviceSupply, "2026-01-25", 0, "2026-02-10 09:01")
	d.exec("UPDATE billing_entries SET lifecycle_status = 'reviewed'", nil)
	_, got := d.do(second, d.e.Submit("", changesTime, changesTime))
	d.want("the younger of two", got, "duplicate_entry")
	_, got = d.do(first, d.e.Submit("", changesTime, changesTime))
	d.want("the older", got, "")
	_, got = d.do(first, d.e.Deny("50", "Not necessary", "2026-03-01", changesTime))
	d.want("denied", got, "")
	d.exec("UPDATE billing_entries SET lifecycle_status = 'pending_review' WHERE id = {:id}", dbx.Params{"id": second.Id})
	_, got = d.do(second, d.e.Review(d.by, "", "", false, changesTime))
	d.want("beside a denied one", got, "duplicate_entry")
	_, got = d.do(second, d.e.Review(d.by, "", "Sent to the wrong payer", false, changesTime))
	d.want("beside a denied one, with a reason", got, "")
	_, got = d.do(first, d.e.Resubmit(billing.Corrections{Override: "Both"}, "", changesTime))
	d.want("the denied one again", got, "duplicate_entry")
}

// 99453 is billed once per episode of care, which ends when the patient is archived or has had no device for twelve months.
func TestSetupOncePerEpisode(t *testing.T) {
	for name, test := range map[string]struct {
		until, archived, restored, again string
		want                             string
	}{
		"within a year":               {until: "2026-06-30", again: "2027-06-29", want: "[frequency_limit]"},
		"after twelve months":         {until: "2026-06-30", again: "2027-06-30", want: "[]"},
		"archived and enrolled again": {until: "2026-06-30", archived: "2026-07-01", restored: "2026-08-01", again: "2026-08-02", want: "[]"},
		"archived at the first days":  {until: "2026-06-30", archived: "2026-01-05", restored: "2026-01-06", again: "2026-08-02", want: "[]"},
	} {
		d := newFixture(t, newCodes)
		patient := d.patient(wears("2026-01-01", test.until, "2026-01-01", 20), taught("2026-01-02"), wears(test.again, "", test.again, 20))
		if test.archived != "" {
			d.exec("UPDATE patients SET archived_at = {:a}, unarchived_at = {:r} WHERE id = {:p}",
				dbx.Params{"a": collections.FormatInstant(at(test.archived + " 09:00")), "r": collections.FormatInstant(at(test.restored + " 09:00")), "p": patient})
		}
		entry := d.made(patient, billing.Setup, "2026-01-02", 0, "2026-02-02 09:00")
		if _, got := d.do(entry, d.e.Review(d.by, "", "", false, changesTime)); got != "" {
			t.Fatalf("%s: the first set-up is refused: %s", name, got)
		}
		d.exec(`UPDATE devices SET setup_completed_at = {:at} WHERE patient = {:p} AND device_id = (SELECT device_id FROM device_assignments
			WHERE patient = {:p} ORDER BY assigned_at DESC LIMIT 1)`, dbx.Params{"p": patient, "at": collections.FormatInstant(at(test.again + " 10:00"))})
		_, err := d.manual(patient, billing.Setup, test.again, 0, test.again+" 12:00")
		d.want(name, fmt.Sprint(reasonsOf(err)), test.want)
	}
}

// A sixteenth day that arrives after 99445 was sent, and the twentieth minute after 99470, make the claim a task: the other code is right.
func TestLateDayAfterSubmission(t *testing.T) {
	d := newFixture(t, newCodes)
	patient := d.patient(wears("2026-01-01", "", "2026-01-01", 15), talked("2026-01-10 09:00", 12))
	d.run(billing.AllJobs, "2026-02-02 09:00")
	recheck := func() string {
		t.Helper()
		if _, _, err := d.e.RecheckAll(t.Context(), d.app, at("2026-02-03 09:00")); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(d.entry(patient, billing.ShortSupply).Warnings(), d.entry(patient, billing.FirstTen).Warnings())
	}
	for _, code := range []string{billing.ShortSupply, billing.FirstTen} {
		for _, m := range []billing.Transition{d.e.Review(d.by, "", "", false, changesTime), d.e.Submit("", changesTime, changesTime)} {
			if _, got := d.do(d.entry(patient, code), m); got != "" {
				t.Fatalf("%s: %s", code, got)
			}
		}
	}
	d.want("as sent", recheck(), "[missing_order] [missing_order]")
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings)
		VALUES ({:p}, '2026-01-20', 'weight', 'x', 1, 1)`, dbx.Params{"p": patient})
	d.insert(patient, logRow{d.nurse.Id, "interactive", "phone", "manual", at("2026-01-25 09:00"), 8 * 60})
	d.want("late", recheck(), "[missing_order evidence_changed days_above_maximum] [missing_order evidence_changed minutes_above_maximum]")
}

// A set-up needs the days of a device code in a 30-day period of its episode, by hand as by the engine: sixteen, from 2026 on two, and sixteen where the
// payer does not take 99445. The days are those of the year of the supply.
func TestSetupNeedsMonitoring(t *testing.T) {
	for name, test := range map[string]struct {
		first, taught string // of the data, and the training
		days          int
		payerDays     int
		want          string
	}{
		"none":                      {"2026-01-01", "2026-01-02", 0, 0, "no_device_data"},
		"one":                       {"2026-01-01", "2026-01-02", 1, 0, "days_below_minimum"},
		"two":                       {"2026-01-01", "2026-01-02", 2, 0, ""},
		"fifteen, a payer of 99454": {"2026-01-01", "2026-01-02", 15, 16, "days_below_minimum"},
		"sixteen, a payer of 99454": {"2026-01-01", "2026-01-02", 16, 16, ""},
		"fifteen in 2025":           {"2025-11-20", "2025-11-21", 15, 0, "days_below_minimum"},
		"sixteen in 2025":           {"2025-11-20", "2025-11-21", 16, 0, ""},
		"two, supplied in 2026":     {"2025-12-20", "2025-12-21", 2, 0, ""},
	} {
		d := newFixture(t, newCodes)
		patient := d.patient(wears(test.first, "", test.first, test.days), taught(test.taught))
		if test.payerDays > 0 {
			payer, _, err := collections.AddPayer(d.app, collections.Payer{Name: "Acme", Code: "AC", Active: true, DeviceDays: test.payerDays}, changesTime)
			if err != nil {
				t.Fatal(err)
			}
			d.exec("UPDATE patients SET insurance_payer = {:payer} WHERE id = {:p}", dbx.Params{"payer": payer.Number(), "p": patient})
		}
		entry := d.made(patient, billing.Setup, test.taught, 0, "2026-02-02 09:00")
		_, err := d.e.ApplyTransition(d.app, entry.Id, d.e.Review(d.by, "", "", false, changesTime), d.by, changesTime)
		d.want(name, strings.Join(reasonsOf(err), " "), test.want)
		isMade := slices.ContainsFunc(d.run(billing.AllJobs, "2026-02-02 10:00").Created, func(c billing.CreatedEntry) bool {
			return c.CPTCode == billing.DeviceSupply || c.CPTCode == billing.ShortSupply
		})
		if isMade != (test.want == "") {
			t.Errorf("%s: the engine bills the supply: %t", name, isMade)
		}
	}
}

// Thresholds, default rates and exclusions are those of the service date's year, for every code and also where a later year changes them.
func TestRulesOfTheServiceDate(t *testing.T) {
	next := billing.RulePacks()[1]
	next.Year, next.Codes, next.Exclusions = 2027, slices.Clone(next.Codes), nil
	for i, r := range next.Codes {
		switch r.Code {
		case billing.DeviceSupply:
			next.Codes[i].MinDays, next.Codes[i].Rate = 10, 7000
		case billing.FirstTwenty:
			next.Codes[i].MinMinutes = 30
		}
	}
	billing.UsePacksForTest(t, append(billing.RulePacks(), next)...)
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-01", 12), talked("2026-01-10 09:00", 25))
	d.run(billing.AllJobs, "2026-02-02 09:00")
	d.want("2026", d.entries(patient), "99457 2026-01-10 1")
	for year, want := range map[int]string{2024: "[frequency_limit]", 2025: "[frequency_limit]", 2026: "[frequency_limit]", 2027: "[]", 2030: "[]"} {
		d.want("beside each other", fmt.Sprint(billing.BesideReasonsForTest(billing.DeviceSupply, billing.DeviceSupply, fmt.Sprintf("%d-06-01", year))), want)
	}
	later := d.patient(wears("2027-01-02", "", "2027-01-02", 12), talked("2027-01-10 09:00", 25))
	d.run(billing.AllJobs, "2027-02-02 09:00")
	d.want("2027", d.entries(later), "99454 2027-01-31 1")
	if got := d.entry(later, billing.DeviceSupply).AmountCents(); got != 7000 {
		t.Errorf("the rate is %d", got)
	}
}
