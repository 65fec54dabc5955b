package billing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Every line of every year has a source, and a file that has none, an unknown code or a field that does not exist is refused.
func TestRulePacks(t *testing.T) {
	packs := billing.RulePacks()
	if len(packs) < 2 || packs[0].Year != 2025 || packs[1].Year != 2026 {
		t.Fatalf("%d packs", len(packs))
	}
	line := func(more string) string {
		return `{"year": 2027, "codes": [{"code": "99454", "period": "30_days", "min_days": 16, "source": "CMS"` + more + `], "exclusions": [], "modifiers": [], "fees": []}`
	}
	if _, err := billing.ReadRulePack([]byte(line("}"))); err != nil {
		t.Error(err)
	}
	for name, file := range map[string]string{
		"no source": strings.Replace(line("}"), `"CMS"`, `" "`, 1), "unknown code": strings.Replace(line("}"), "99454", "99999", 1), "unknown period": strings.Replace(line("}"), "30_days", "week", 1),
		"unknown field": line(`, "min_day": 2}`), "no year": strings.Replace(line("}"), "2027", "27", 1), "unknown reason": strings.Replace(line("}"), `"exclusions": []`, `"exclusions": [{"codes": ["99454", "99445"], "reasons": ["x"], "source": "CMS"}]`, 1),
		"fee without source": strings.Replace(line("}"), `"fees": []`, `"fees": [{"code": "99454", "expected": 50}]`, 1), "no JSON": "year 2027",
	} {
		if _, err := billing.ReadRulePack([]byte(file)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// The preview of a year lists what differs from the year before: 2026 adds two codes and their exclusions.
func TestRuleChanges(t *testing.T) {
	packs := billing.RulePacks()
	var got []string
	for _, c := range billing.ChangesIn(packs[1]) {
		if strings.HasPrefix(c.Item, "99445") || strings.HasPrefix(c.Item, "99454") {
			text := "–"
			if c.After != nil {
				text = *c.After
			}
			got = append(got, fmt.Sprint(c.Item, " ", c.Before == nil, " ", text))
		}
	}
	want := "[99445 automatic true true 99445 default_rate true 47.00 99445 expected true 52.11 99445 instead true 99454 99445 max_days true 15 99445 min_days true 2 99445 period true 30_days " +
		"99445+99445 excluded true frequency_limit 99445+99454 excluded true frequency_limit, excluded_pair 99454 expected true 52.11 99454 instead true 99445]"
	if fmt.Sprint(got) != want {
		t.Errorf("2026 changes\n%v, want\n%s", got, want)
	}
	next := packs[1]
	next.Year, next.Codes = 2027, append([]billing.Rule{}, next.Codes[1:]...)
	next.Codes[0].MinDays = 10
	removed, changed := 0, ""
	for _, c := range billing.ChangesIn(next) {
		if c.After == nil {
			removed++
		} else {
			changed += fmt.Sprint(c.Item, " ", *c.Before, " ", *c.After)
		}
	}
	if changed != "99454 min_days 16 10" || removed != 4 {
		t.Errorf("changed %q, removed %d", changed, removed)
	}
}

// From November the rules of the next year are missing, until the program has them.
func TestMissingRules(t *testing.T) {
	e := billing.New(billing.Settings{Zone: time.UTC})
	for day, want := range map[string]int{"2025-06-01": 0, "2025-12-31": 0, "2026-10-31": 0, "2026-11-01": 2027, "2027-03-01": 2027, "2027-11-01": 2028} {
		if got := e.MissingRulesYear(billing.ParseDay(day)); got != want {
			t.Errorf("on %s the rules of %d are missing, want %d", day, got, want)
		}
	}
}
