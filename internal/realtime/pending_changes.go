package realtime

import (
	"strconv"
	"sync"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// queue holds ids in order of arrival, each once: what changes ten times before its turn is sent once.
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

// first returns up to n ids; [queue.drop] removes them.
func (q *queue) first(n int) []string { return q.order[:max(0, min(n, len(q.order)))] }

func (q *queue) drop(n int) {
	for _, id := range q.order[:n] {
		delete(q.waiting, id)
	}
	q.order = append([]string(nil), q.order[n:]...)
}

// pendingChanges are the changes not sent yet. Changes by users and readings precede those of the hourly rescoring.
type pendingChanges struct {
	alerts, escalations, patients, rescored queue
	// portal are the patients with news for the portal.
	portal queue
	totals bool
}

// addEntry adds the changes of an audit row. Reads, refusals and other resources change nothing.
func (c *pendingChanges) addEntry(mark collections.AuditSummary) {
	if mark.Patient == "" || mark.Action == string(audit.Read) || mark.Outcome != string(audit.Success) {
		return
	}
	switch mark.ResourceType {
	case audit.ResourceMessage, audit.ResourceConsent, audit.ResourceRelatedPerson:
		c.portal.add(mark.Patient)
		return
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
	c.portal.add(mark.Patient)
	c.totals = true
}

// numberID returns the record id of a public number.
func numberID(number string) string {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return number
	}
	return collections.NumberID(n)
}

func (c *pendingChanges) hasAny() bool {
	return len(c.alerts.order)+len(c.escalations.order)+len(c.patients.order)+len(c.rescored.order)+len(c.portal.order) > 0 || c.totals
}

// rescoredInbox collects patients that other goroutines have rescored.
type rescoredInbox struct {
	lock sync.Mutex
	ids  []string
}

func (ri *rescoredInbox) put(ids []string) {
	ri.lock.Lock()
	defer ri.lock.Unlock()
	ri.ids = append(ri.ids, ids...)
}

func (ri *rescoredInbox) take() []string {
	ri.lock.Lock()
	defer ri.lock.Unlock()
	ids := ri.ids
	ri.ids = nil
	return ids
}
