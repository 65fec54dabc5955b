package billing_test

import (
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/billing"
)

// A denied claim that moves to another month needs that month's time, documented and attested.
func TestMovedClaimNeedsAttestedTime(t *testing.T) {
	for name, story := range map[string]struct {
		source, spoil, want string
	}{
		"by phone":     {"manual", "", ""},
		"not noted":    {"manual", "notes = ''", "invalid_state"},
		"not attested": {"escalation", "", "invalid_state"},
		"attested":     {"escalation", "attested_at = '2026-02-11T09:00:00.000000Z', attested_by = 'n@vigil.test'", ""},
	} {
		d := newFixture(t)
		patient := d.patient(talked("2026-01-10 10:00", 25))
		d.run(billing.TimeJob, "2026-02-02 09:00")
		entry := d.entry(patient, billing.FirstTwenty)
		for _, m := range []billing.Transition{d.e.Review(d.by, "", "", false, changesTime), d.e.Submit("", changesTime, changesTime), d.e.Deny("CO-16", "Lacks", "2026-03-01", changesTime)} {
			if _, got := d.do(entry, m); got != "" {
				t.Fatal(name, m.Name, got)
			}
		}
		d.insert(patient, logRow{d.nurse.Id, "interactive", "phone", story.source, at("2026-02-10 09:00"), 1500})
		if story.spoil != "" {
			d.exec("UPDATE time_entries SET "+story.spoil+" WHERE patient = {:p} AND started_at > '2026-02-01'", dbx.Params{"p": patient})
		}
		after, got := d.do(entry, d.e.Resubmit(billing.Corrections{ServiceDate: "2026-02-10"}, "", changesTime))
		if got != story.want || got == "" && (after.PeriodStart() != "2026-02-01" || after.ServiceDate() != "2026-02-10") {
			t.Errorf("%s: sent again with %q", name, got)
		}
		if got != "" && d.found(entry.Id).Status() != billing.Denied {
			t.Errorf("%s: the refused claim is %s", name, d.found(entry.Id).Status())
		}
	}
}
