package dashboard

import (
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/internal/authz"
)

// freshFor is how long figures are cached. Source: docs/decisions/dashboard.md, "KPI details".
const freshFor = 30 * time.Second

// Options of a board.
type Options struct {
	// Zone is the practice's time zone, for days and months.
	Zone *time.Location
	// CursorKey signs the cursors of the feed.
	CursorKey []byte
}

// Board computes the dashboard's figures. They are cached for half a minute, and concurrent requests share one computation.
type Board struct {
	Options
	group   singleflight.Group
	lock    sync.Mutex
	figures map[string]figure
}

type figure struct {
	value any
	until time.Time
}

// NewBoard returns a board.
func NewBoard(o Options) *Board { return &Board{Options: o, figures: map[string]figure{}} }

// cached returns a cached figure, or computes and caches it.
func cached[T any](b *Board, key string, now time.Time, work func() (T, error)) (T, error) {
	b.lock.Lock()
	found, ok := b.figures[key]
	b.lock.Unlock()
	if ok && now.Before(found.until) && found.until.Sub(now) <= freshFor {
		return found.value.(T), nil
	}
	value, err, _ := b.group.Do(key, func() (any, error) {
		value, err := work()
		if err == nil {
			b.store(key, value, now)
		}
		return value, err
	})
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}

func (b *Board) store(key string, value any, now time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for other, found := range b.figures {
		if !now.Before(found.until) {
			delete(b.figures, other)
		}
	}
	b.figures[key] = figure{value, now.Add(freshFor)}
}

// today returns the practice's date.
func (b *Board) today(now time.Time) time.Time {
	year, month, day := now.In(b.Zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Group is a set of roles with the same dashboard. Source: docs/decisions/users.md, "Dashboard groups".
type Group string

// The groups.
const (
	Administrators Group = "admin"
	Clinicians     Group = "clinician"
	Staff          Group = "staff"
	Billing        Group = "billing"
)

// GroupOf returns the group of a role; "" for a role without a dashboard.
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

// Sections lists the sections of a role, in the order of the contract. Source: docs/decisions/dashboard.md, "Role-dependent sections".
func Sections(role authz.Role) []string { return sections[GroupOf(role)] }

var quickActions = map[Group][]string{
	Administrators: {"add_patient", "import_from_emr", "view_triage_queue", "run_billing", "export_reports", "system_settings"},
	Clinicians:     {"add_patient", "view_triage_queue"},
	Staff:          {"add_patient", "import_from_emr"},
	Billing:        {"run_billing", "export_reports"},
}

// QuickActions lists the actions offered to a role. A clinical manager, who coordinates the staff, has the staff's actions too.
func QuickActions(role authz.Role) []string {
	if role == authz.ClinicalManager {
		return []string{"add_patient", "import_from_emr", "view_triage_queue"}
	}
	return quickActions[GroupOf(role)]
}
