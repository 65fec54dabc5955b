package dashboard

import (
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/internal/authz"
)

// freshFor is how long figures are answered from memory. Source: docs/decisions/dashboard.md, "KPI details".
const freshFor = 30 * time.Second

// Options of a board.
type Options struct {
	// Zone is the practice's: its days and months are counted.
	Zone *time.Location
	// CursorKey signs the cursors of the feed.
	CursorKey []byte
}

// Board answers what people ask of the dashboard. Figures are remembered for half a minute, and worked out once for all who ask at the same time.
type Board struct {
	Options
	once   singleflight.Group
	lock   sync.Mutex
	answer map[string]figure
}

type figure struct {
	value any
	until time.Time
}

// NewBoard returns a board.
func NewBoard(o Options) *Board { return &Board{Options: o, answer: map[string]figure{}} }

// remembered answers from memory, or works the answer out and remembers it.
func remembered[T any](b *Board, key string, now time.Time, work func() (T, error)) (T, error) {
	b.lock.Lock()
	known, ok := b.answer[key]
	b.lock.Unlock()
	if ok && now.Before(known.until) && known.until.Sub(now) <= freshFor {
		return known.value.(T), nil
	}
	value, err, _ := b.once.Do(key, func() (any, error) {
		value, err := work()
		if err == nil {
			b.remember(key, value, now)
		}
		return value, err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}

func (b *Board) remember(key string, value any, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for other, known := range b.answer {
		if !now.Before(known.until) {
			delete(b.answer, other)
		}
	}
	b.answer[key] = figure{value, now.Add(freshFor)}
}

// today is the practice's date.
func (b *Board) today(now time.Time) time.Time {
	year, month, day := now.In(b.Zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Group is what a role sees of the dashboard. Source: docs/decisions/users.md, "Dashboard groups".
type Group string

// The groups.
const (
	Administrators Group = "admin"
	Clinicians     Group = "clinician"
	Staff          Group = "staff"
	Billing        Group = "billing"
)

// GroupOf is the group of a role; "" for one without a dashboard.
func GroupOf(role authz.Role) Group {
	switch role {
	case authz.Admin:
		return Administrators
	case authz.ClinicalManager, authz.Provider, authz.Nurse:
		return Clinicians
	case authz.MA:
		return Staff
	case authz.DataMonitor:
		return Billing
	}
	return ""
}

var sections = map[Group][]string{
	Administrators: {
		"kpis", "triage", "alerts", "clinical_feed", "import_status", "compliance", "device_connectivity", "revenue", "billing_pipeline", "system",
	},
	Clinicians: {"kpis", "triage", "alerts", "clinical_feed"},
	Staff:      {"kpis", "import_status", "compliance", "device_connectivity"},
	Billing:    {"kpis", "revenue", "billing_pipeline"},
}

// Sections lists what a role sees, in the order of the contract. Source: docs/decisions/dashboard.md, "Role-dependent sections".
func Sections(role authz.Role) []string { return sections[GroupOf(role)] }

var quickActions = map[Group][]string{
	Administrators: {"add_patient", "import_from_emr", "view_triage_queue", "run_billing", "export_reports", "system_settings"},
	Clinicians:     {"add_patient", "view_triage_queue"},
	Staff:          {"add_patient", "import_from_emr"},
	Billing:        {"run_billing", "export_reports"},
}

// QuickActions lists what a role is offered. The clinical manager, who coordinates the staff, has the staff's actions too.
func QuickActions(role authz.Role) []string {
	if role == authz.ClinicalManager {
		return []string{"add_patient", "import_from_emr", "view_triage_queue"}
	}
	return quickActions[GroupOf(role)]
}
