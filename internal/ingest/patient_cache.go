package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	maxCached = 16_384 // patients, and devices
	// maxAuditBacklog is how many audit entries of others are read to invalidate; beyond it the cache is cleared.
	maxAuditBacklog = 500
)

// patientCache avoids a database read for most readings. Every other writer appends an audit entry in the transaction of its change, so the
// entries since the writer's own last one name the patients to invalidate. A nil cache stores nothing.
type patientCache struct {
	head     string // id of the audit entry up to which the cache is valid
	patients map[string]*cachedPatient
	devices  map[string]deviceHolding
}

// cachedPatient holds the patient data that the writer needs.
type cachedPatient struct {
	row              patientRow
	snapshot         *triage.PatientSnapshot // nil: not loaded
	earliestValidDay string                  // the earliest day found not to be before the patient's birth; "" for none
}

// deviceHolding is the open assignment of a device; patient is "" if it has none.
type deviceHolding struct {
	patient string
	since   time.Time
}

func newPatientCache() *patientCache {
	return &patientCache{patients: map[string]*cachedPatient{}, devices: map[string]deviceHolding{}}
}

func (c *patientCache) clear() {
	c.head = ""
	clear(c.patients)
	clear(c.devices)
}

// invalidateSince removes what others changed since the last transaction. It runs first in each transaction.
func (c *patientCache) invalidateSince(tx core.App, head string) error {
	if c.head == "" || len(c.patients) > maxCached || len(c.devices) > maxCached {
		c.clear()
		return nil
	}
	if head == c.head {
		return nil
	}
	marks, err := collections.AuditSummariesAfter(tx, c.head, maxAuditBacklog)
	if err != nil {
		return err
	}
	if len(marks) == maxAuditBacklog {
		c.clear()
		return nil
	}
	for _, mark := range marks {
		c.invalidate(mark)
	}
	return nil
}

// auditResourcesIgnored are audit resources that change no cached data: sign-ins, mail, billing, deliveries.
var auditResourcesIgnored = []string{
	audit.ResourceAnnouncement, audit.ResourceAuditEvent, audit.ResourceBillingEntry, audit.ResourceBillingRun, audit.ResourceClaim,
	audit.ResourceEMRConnection, audit.ResourceEMRPatient, audit.ResourceEndpoint, audit.ResourceGatewayEvent, audit.ResourceLoginKey,
	audit.ResourceMail, audit.ResourceService, audit.ResourceSuperuser, audit.ResourceTimeEntry, audit.ResourceTopic, audit.ResourceTransmission,
}

// invalidate removes what an audit entry changed; an unknown entry clears the cache.
func (c *patientCache) invalidate(mark collections.AuditSummary) {
	switch {
	case mark.Action == string(audit.Read) || slices.Contains(auditResourcesIgnored, mark.ResourceType) || (mark.Patient == "" && mark.ResourceType == ""):
	case mark.ResourceType == audit.ResourceUser && mark.Action == string(audit.Execute): // signing in and out
	case mark.ResourceType == audit.ResourceDevice:
		clear(c.devices)
		delete(c.patients, mark.Patient)
	case mark.Patient != "":
		delete(c.patients, mark.Patient)
	default:
		c.clear()
	}
}

// patient returns a cached patient, or reads it.
func (c *patientCache) patient(tx core.App, id string) (*cachedPatient, error) {
	if c != nil && c.patients[id] != nil {
		return c.patients[id], nil
	}
	found, err := loadPatientRow(tx, id)
	if err != nil {
		return nil, err
	}
	k := &cachedPatient{row: found}
	if c != nil {
		c.patients[id] = k
	}
	return k, nil
}

// deviceHolder returns the holder of the reading's device at the time of measurement; "" for none.
func (c *patientCache) deviceHolder(tx core.App, r vitals.Reading) (string, error) {
	if c == nil {
		return collections.DeviceHolder(tx, r.DeviceID, r.MeasuredAt)
	}
	held, ok := c.devices[r.DeviceID]
	if ok && !r.MeasuredAt.Before(held.since) {
		return held.patient, nil
	}
	patient, since, err := collections.CurrentHolder(tx, r.DeviceID)
	if err != nil {
		return "", err
	}
	c.devices[r.DeviceID] = deviceHolding{patient, since}
	if !r.MeasuredAt.Before(since) {
		return patient, nil
	}
	return collections.DeviceHolder(tx, r.DeviceID, r.MeasuredAt)
}

// snapshotFor returns the patient snapshot for a reading.
func (p *cachedPatient) snapshotFor(tx core.App, patientID string, r vitals.Reading, now time.Time) (triage.PatientSnapshot, error) {
	if p.snapshot == nil {
		return triage.ReadSnapshot(tx, patientID, &r, now)
	}
	snapshot := *p.snapshot
	return snapshot, snapshot.ReloadBaseline(tx, &r, now)
}

// update stores the snapshot after a reading. A patient with escalations is not cached, because they also change with time.
func (p *cachedPatient) update(effects Effects, outcome Outcome, now time.Time) {
	snapshot := effects.SnapshotAfter
	if len(snapshot.Escalations) > 0 {
		p.snapshot = nil
		return
	}
	raised := len(snapshot.Open)
	for i := len(outcome.Alerts) - 1; i >= 0; i-- { // new alerts are last, in the order of storage
		if !effects.Alerts[i].IsClosed() {
			raised--
			snapshot.Open[raised].ID = outcome.Alerts[i].ID
		}
	}
	snapshot.Recent = slices.DeleteFunc(slices.Clone(snapshot.Recent), func(a triage.RecentAlert) bool { return !triage.CountsForScore(a, now) })
	p.snapshot = &snapshot
}

// storedInstant returns a time with the precision of a database column.
func storedInstant(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }
