package billing

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// rulePackFiles are the rules of the calendar years of service, one file each. A change of law is a new file, never a changed one. Source:
// docs/decisions/billing.md, "Rules of a year".
//
//go:embed rules/*.json
var rulePackFiles embed.FS

// RulePack is the rules for services of a year and of later ones without a file, each line with its source.
type RulePack struct {
	Year       int         `json:"year"`
	Codes      []Rule      `json:"codes"`
	Exclusions []Exclusion `json:"exclusions"`
	Modifiers  []Modifier  `json:"modifiers"`
	Fees       []PackedFee `json:"fees"`
}

// Exclusion is two codes of one patient and period, or one code twice, that are not both billed, with the reasons of the refusal.
type Exclusion struct {
	Codes   []string `json:"codes"`
	Reasons []string `json:"reasons"`
	Source  string   `json:"source"`
}

// Modifier is a modifier that payers may require beside those of the practice's settings.
type Modifier struct {
	Modifier string `json:"modifier"`
	Use      string `json:"use"`
	Source   string `json:"source"`
}

// PackedFee is the national expected payment of a code.
type PackedFee struct {
	Code     string `json:"code"`
	Expected Cents  `json:"expected"`
	Source   string `json:"source"`
}

// rulePacks are the shipped files, oldest first.
var rulePacks = mustReadRulePacks()

// RulePacks returns the shipped rules, oldest first.
func RulePacks() []RulePack { return slices.Clone(rulePacks) }

func mustReadRulePacks() (packs []RulePack) {
	files, _ := fs.Glob(rulePackFiles, "rules/*.json") // the pattern is well-formed
	for _, name := range files {
		file, err := rulePackFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		pack, err := ReadRulePack(file)
		if err != nil {
			panic(name + ": " + err.Error()) // part of the program: a test reads it
		}
		packs = append(packs, pack)
	}
	return packs
}

// ReadRulePack reads the rules of a year, and rejects a line without a source, an unknown code or reason, and a field that does not exist.
func ReadRulePack(file []byte) (pack RulePack, err error) {
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&pack); err != nil {
		return pack, err
	}
	if pack.Year < firstFeeYear || pack.Year > 9999 {
		return pack, fmt.Errorf("the year is %d", pack.Year)
	}
	check := func(what, source string, isKnown bool) {
		switch {
		case err != nil:
		case strings.TrimSpace(source) == "":
			err = fmt.Errorf("%s has no source", what)
		case !isKnown:
			err = fmt.Errorf("%s has an unknown code, period or reason", what)
		}
	}
	for i, r := range pack.Codes {
		pack.Codes[i].After = append([]string{}, r.After...)
		check("code "+r.Code, r.Source, inCatalog(r.Code) && slices.Contains([]Period{OncePerEpisode, ThirtyDays, CalendarMonth}, r.Period))
	}
	for _, x := range pack.Exclusions {
		isKnown := len(x.Codes) == 2 && len(x.Reasons) > 0 && !slices.ContainsFunc(x.Codes, func(code string) bool { return !inCatalog(code) }) &&
			!slices.ContainsFunc(x.Reasons, func(reason string) bool { return reason != FrequencyLimit && reason != ExcludedPair })
		check("exclusion "+strings.Join(x.Codes, "+"), x.Source, isKnown)
	}
	for _, m := range pack.Modifiers {
		check("modifier "+m.Modifier, m.Source, len(m.Modifier) == 2)
	}
	for _, fee := range pack.Fees {
		check("fee of "+fee.Code, fee.Source, inCatalog(fee.Code))
	}
	return pack, err
}

// rulesOf returns the rules of packs with the service dates for which each is in force: from its year on until the next pack, the first one for
// earlier dates too.
func rulesOf(packs []RulePack) (list []Rule) {
	for i, pack := range packs {
		for _, r := range pack.Codes {
			if i > 0 || r.Requires2026Codes {
				r.EffectiveFrom = fmt.Sprintf("%d-01-01", pack.Year)
			}
			if i+1 < len(packs) {
				r.EffectiveUntil = fmt.Sprintf("%d-12-31", packs[i+1].Year-1)
			}
			list = append(list, r)
		}
	}
	return list
}

// packOf returns the rules of a service date: those of its year, else of the latest year before, else the first.
func packOf(serviceDate string) RulePack {
	pack := rulePacks[0]
	for _, p := range rulePacks {
		if fmt.Sprintf("%d-01-01", p.Year) <= serviceDate {
			pack = p
		}
	}
	return pack
}

// exclusionOf returns why two codes are not both billed by the rules of a service date, nil if they are.
func exclusionOf(code, other, serviceDate string) []string {
	for _, x := range packOf(serviceDate).Exclusions {
		if slices.Equal(x.Codes, []string{code, other}) || slices.Equal(x.Codes, []string{other, code}) {
			return x.Reasons
		}
	}
	return nil
}

// RuleChange is a value that differs between the rules of two years; nil where there is none.
type RuleChange struct {
	Item   string  `json:"item"`
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// ChangesIn returns what a pack changes of the newest shipped one before its year; everything if there is none.
func ChangesIn(pack RulePack) []RuleChange {
	before := map[string]string{}
	for _, p := range rulePacks {
		if p.Year < pack.Year {
			before = p.values()
		}
	}
	list, after := []RuleChange{}, pack.values()
	for item, value := range after {
		if was, known := before[item]; !known {
			list = append(list, RuleChange{Item: item, After: &value})
		} else if was != value {
			list = append(list, RuleChange{item, &was, &value})
		}
	}
	for item, was := range before {
		if _, stays := after[item]; !stays {
			list = append(list, RuleChange{Item: item, Before: &was})
		}
	}
	slices.SortFunc(list, func(a, b RuleChange) int { return cmp.Compare(a.Item, b.Item) })
	return list
}

// values returns the values of a pack by item, such as "99454 min_days": "16". Sources are no values.
func (p RulePack) values() map[string]string {
	found := map[string]string{}
	for _, r := range p.Codes {
		for name, value := range map[string]any{
			"period": r.Period, "min_days": r.MinDays, "max_days": r.MaxDays, "min_minutes": r.MinMinutes, "block_minutes": r.Block, "max_minutes": r.MaxMinutes,
			"category": r.Category, "instead": r.Instead, "after": strings.Join(r.After, ", "), "default_rate": r.Rate, "automatic": r.Automatic,
		} {
			if text := fmt.Sprint(value); text != "" && text != "0" && text != "false" {
				found[r.Code+" "+name] = text
			}
		}
	}
	for _, x := range p.Exclusions {
		found[strings.Join(x.Codes, "+")+" excluded"] = strings.Join(x.Reasons, ", ")
	}
	for _, m := range p.Modifiers {
		found["modifier "+m.Modifier] = m.Use
	}
	for _, fee := range p.Fees {
		found[fee.Code+" expected"] = fee.Expected.String()
	}
	return found
}

// MissingRulesYear returns the year of which this version has no rules: the next one from November on, by when CMS publishes it, else the current one; 0
// for none. Until an update has it, the newest rules apply.
func (e *Engine) MissingRulesYear(now time.Time) int {
	year := now.In(e.Zone).Year()
	if now.In(e.Zone).Month() >= missingFeesFrom {
		year++
	}
	if slices.ContainsFunc(rulePacks, func(p RulePack) bool { return p.Year >= year }) {
		return 0
	}
	return year
}
