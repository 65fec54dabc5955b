package realtime

import (
	"strconv"
	"sync"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// queue holds ids in the order in which they came in, each once: what changes ten times before its turn is told once.
type queue struct {
	order   []string
	waiting map[string]bool
}

func (q *queue) add(id string) {
	if q.waiting[id] {
		return
	}
	if q.waiting == nil {
		q.waiting = map[string]bool{}
	}
	q.waiting[id] = true
	q.order = append(q.order, id)
}

// first returns up to n ids; they leave the queue with [queue.drop].
func (q *queue) first(n int) []string { return q.order[:max(0, min(n, len(q.order)))] }

func (q *queue) drop(n int) {
	for _, id := range q.order[:n] {
		delete(q.waiting, id)
	}
	q.order = append([]string(nil), q.order[n:]...)
}

// changes are what has not been told yet. What people and readings did goes before what the hour changed.
type changes struct {
	alerts, escalations, patients, aged queue
	totals                              bool
}

// note adds what an audit row tells of. Rows about other things, reads and refusals tell of nothing.
func (c *changes) note(mark collections.AuditMark) {
	if mark.Patient == "" || mark.Action == string(audit.Read) || mark.Outcome != string(audit.Success) {
		return
	}
	switch mark.ResourceType {
	case audit.ResourceAlert, collections.Alerts:
		c.alerts.add(numberID(mark.ResourceID))
	case audit.ResourceEscalation, collections.Escalations:
		c.escalations.add(numberID(mark.ResourceID))
	case audit.ResourceObservation, audit.ResourcePatient, audit.ResourceThresholds, audit.ResourceSnooze, audit.ResourceCareTeam,
		collections.Observations, collections.Patients, collections.Thresholds, collections.CareTeamMembers, collections.TriageScores:
	default:
		return
	}
	c.patients.add(mark.Patient)
	c.totals = true
}

// numberID is the record id of a public number.
func numberID(number string) string {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return number
	}
	return collections.NumberID(n)
}

func (c *changes) any() bool {
	return len(c.alerts.order)+len(c.escalations.order)+len(c.patients.order)+len(c.aged.order) > 0 || c.totals
}

// inbox is where other goroutines leave whom the clock has ranked anew.
type inbox struct {
	lock sync.Mutex
	ids  []string
}

func (b *inbox) put(ids []string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ids = append(b.ids, ids...)
}

func (b *inbox) take() []string {
	b.lock.Lock()
	defer b.lock.Unlock()
	ids := b.ids
	b.ids = nil
	return ids
}
