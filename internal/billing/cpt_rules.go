package billing

import (
	"slices"
)

// The CPT codes. Source: specification, CPT codes and engine rules.
const (
	Setup          = "99453"
	DeviceSupply   = "99454"
	FirstTwenty    = "99457"
	NextTwenty     = "99458"
	Interpretation = "99091"
	ShortSupply    = "99445" // CMS, 2026
	FirstTen       = "99470" // CMS, 2026
	ChronicCare    = "99490"
)

// Period is the period for which a code is billed once.
type Period string

// The periods.
const (
	OncePerEpisode Period = "episode"
	ThirtyDays     Period = "30_days"
	CalendarMonth  Period = "month"
)

// The sources of entries. Source: docs/decisions/billing.md, "`source` values".
const (
	SourceDevice     = "automatic_device"
	SourceSetup      = "automatic_setup"
	SourceTime       = "automatic_time"
	SourceEscalation = "escalation"
	SourceManual     = "manual"
)

// Rule is what a code requires, between two service dates. Days and minutes of 0 are not required.
type Rule struct {
	Code              string   `json:"code"`
	Period            Period   `json:"period"`
	MinDays           int      `json:"min_days"` // distinct days with data in the period
	MaxDays           int      `json:"max_days"`
	MinMinutes        int      `json:"min_minutes"`   // for the first unit
	Block             int      `json:"block_minutes"` // for each further unit
	MaxMinutes        int      `json:"max_minutes"`   // of the month; 0 for any
	Category          string   `json:"category"`      // of the time that counts
	Instead           string   `json:"instead"`       // a code that excludes this one in the same period
	After             []string `json:"after"`         // one of these codes must be billed in the same period
	Rate              Cents    `json:"default_rate"`
	EffectiveFrom     string   `json:"-"` // service dates; "" for always
	EffectiveUntil    string   `json:"-"`
	Automatic         bool     `json:"automatic"`           // created by the engine; otherwise only manually
	Requires2026Codes bool     `json:"requires_2026_codes"` // only if the practice enabled the codes of 2026
	Source            string   `json:"source"`
}

// rules are the billable codes of all years. Source: docs/decisions/billing.md, "CPT catalogue and the eight codes", "30-day period and the 16 days
// (99454)", "99453", "99457 and 99458", "99091".
var rules = rulesOf(rulePacks)

// Rule returns the rule of a code on a service date; false if the code cannot be billed then.
func (e *Engine) Rule(code, serviceDate string) (Rule, bool) {
	for _, r := range rules {
		if r.Code == code && (e.Enable2026Codes || !r.Requires2026Codes) && r.isInForce(serviceDate) {
			return r, true
		}
	}
	return Rule{}, false
}

// Codes returns the billable codes, for the list filter and manual entries.
func (e *Engine) Codes() (codes []string) {
	for _, r := range rules {
		if (e.Enable2026Codes || !r.Requires2026Codes) && !slices.Contains(codes, r.Code) {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

// CatalogRow is a code in the API's catalog.
type CatalogRow struct {
	Code           string  `json:"code"`
	Description    string  `json:"description"`
	DefaultRate    Cents   `json:"default_rate"`
	DefaultRateMax *Cents  `json:"default_rate_max"`
	Frequency      string  `json:"frequency"`
	Requirement    string  `json:"requirement"`
	Billable       bool    `json:"billable"`
	OfficialNote   *string `json:"official_note"`
}

// Catalog returns the eight codes with the texts of the API contract.
func (e *Engine) Catalog() []CatalogRow {
	most := Cents(3831)
	short := "CMS since 2026-01-01: device supply with 2 to 15 days of data in 30 days, instead of 99454."
	ten := "CMS since 2026-01-01: first 10 minutes of treatment management in a month, instead of 99457."
	return []CatalogRow{
		{Setup, "Initial device setup and patient education", 1973, nil, "once per patient", "device provided, patient educated", true, nil},
		{DeviceSupply, "Device supply with daily recording/transmission, 30-day period", 4302, nil, "monthly", "at least 16 days of data transmission in the 30-day period", true, nil},
		{FirstTwenty, "Treatment management, first 20 minutes", 4787, nil, "monthly", "at least 20 minutes of interactive communication with patient or caregiver", true, nil},
		{NextTwenty, "Each additional 20 minutes", 3849, nil, "monthly", "each additional 20-minute block after 99457 is met", true, nil},
		{Interpretation, "Collection and interpretation of physiologic data", 5600, nil, "monthly", "at least 30 minutes of interpretation by a qualified provider", true, nil},
		{ShortSupply, "Remote therapeutic monitoring treatment management", 4700, nil, "monthly", "clinical assessment of monitoring data", e.Enable2026Codes, &short},
		{FirstTen, "Remote monitoring management, new tiered codes", 2600, &most, "monthly", "varies by tier", e.Enable2026Codes, &ten},
		{ChronicCare, "Chronic care management, first 20 minutes", 4200, nil, "monthly", "at least 20 minutes, requires consent", false, nil},
	}
}

// isInForce reports whether a rule is that of a service date.
func (r Rule) isInForce(serviceDate string) bool {
	return r.EffectiveFrom <= serviceDate && (r.EffectiveUntil == "" || serviceDate <= r.EffectiveUntil)
}

// baseRule returns the rule of a code on a service date, whether the practice enabled the code or not; of a code that the date's year lacks, the newest.
func baseRule(code, serviceDate string) (rule Rule) {
	for _, r := range rules {
		if r.Code == code {
			if rule = r; r.isInForce(serviceDate) {
				return r
			}
		}
	}
	return rule
}

func inCatalog(code string) bool {
	return slices.ContainsFunc((&Engine{}).Catalog(), func(row CatalogRow) bool { return row.Code == code })
}

// minutesBefore returns how many minutes of the month are billed by the code's primary one: 20 for 99458, else none.
func (r Rule) minutesBefore() int {
	if r.Block == 0 {
		return 0
	}
	return r.MinMinutes - r.Block
}
