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
	// maxAuditBacklog is how many foreign audit entries are read to learn what changed; beyond, everything is forgotten.
	maxAuditBacklog = 500
)

// patientCache is what the writer knows of patients from its last transactions, so that most readings ask the database nothing
// before they are stored. It is true as long as nobody else has changed what it holds, and whoever does appends to the audit
// trail in the same transaction: what was appended since the writer's own last entry names the patients to forget.
// A nil memory remembers nothing.
type patientCache struct {
	head     string // id of the audit entry up to which this is true
	patients map[string]*cachedPatient
	devices  map[string]deviceHolding
}

// cachedPatient is a patient as far as storing a reading is concerned.
type cachedPatient struct {
	row              patientRow
	snapshot         *triage.Picture // nil: to be read
	earliestValidDay string          // the first day known to be none before the patient's birth; "" for none
}

// deviceHolding is the open assignment of a device; patient is "" while nobody has it.
type deviceHolding struct {
	patient string
	since   time.Time
}

func newPatientCache() *patientCache {
	return &patientCache{patients: map[string]*cachedPatient{}, devices: map[string]deviceHolding{}}
}

func (m *patientCache) clear() {
	m.head = ""
	clear(m.patients)
	clear(m.devices)
}

// invalidateSince forgets what others changed since the memory was true. It runs first in each transaction.
func (m *patientCache) invalidateSince(tx core.App, head string) error {
	if m.head == "" || len(m.patients) > maxCached || len(m.devices) > maxCached {
		m.clear()
		return nil
	}
	if head == m.head {
		return nil
	}
	marks, err := collections.AuditMarksAfter(tx, m.head, maxAuditBacklog)
	if err != nil {
		return err
	}
	if len(marks) == maxAuditBacklog {
		m.clear()
		return nil
	}
	for _, mark := range marks {
		m.invalidate(mark)
	}
	return nil
}

// auditResourcesIgnored says nothing about what is remembered: sign-ins, mails, money, deliveries.
var auditResourcesIgnored = []string{
	audit.ResourceAnnouncement, audit.ResourceAuditEvent, audit.ResourceBillingEntry, audit.ResourceBillingRun, audit.ResourceClaim,
	audit.ResourceEMRConnection, audit.ResourceEMRPatient, audit.ResourceEndpoint, audit.ResourceGatewayEvent, audit.ResourceLoginKey,
	audit.ResourceMail, audit.ResourceService, audit.ResourceSuperuser, audit.ResourceTimeEntry, audit.ResourceTopic, audit.ResourceTransmission,
}

// invalidate drops what an entry says was changed; an entry that is not understood drops everything.
func (m *patientCache) invalidate(mark collections.AuditMark) {
	switch {
	case mark.Action == string(audit.Read) || slices.Contains(auditResourcesIgnored, mark.ResourceType) || (mark.Patient == "" && mark.ResourceType == ""):
	case mark.ResourceType == audit.ResourceUser && mark.Action == string(audit.Execute): // signing in and out
	case mark.ResourceType == audit.ResourceDevice:
		clear(m.devices)
		delete(m.patients, mark.Patient)
	case mark.Patient != "":
		delete(m.patients, mark.Patient)
	default:
		m.clear()
	}
}

// patient is what is known of a patient; what is not is read.
func (m *patientCache) patient(tx core.App, id string) (*cachedPatient, error) {
	if m != nil && m.patients[id] != nil {
		return m.patients[id], nil
	}
	found, err := loadPatientRow(tx, id)
	if err != nil {
		return nil, err
	}
	k := &cachedPatient{row: found}
	if m != nil {
		m.patients[id] = k
	}
	return k, nil
}

// deviceHolder is who held the device of a reading when it was taken; "" for nobody.
func (m *patientCache) deviceHolder(tx core.App, r vitals.Reading) (string, error) {
	if m == nil {
		return collections.DeviceHolder(tx, r.DeviceID, r.MeasuredAt)
	}
	held, ok := m.devices[r.DeviceID]
	if ok && !r.MeasuredAt.Before(held.since) {
		return held.patient, nil
	}
	patient, since, err := collections.CurrentHolder(tx, r.DeviceID)
	if err != nil {
		return "", err
	}
	m.devices[r.DeviceID] = deviceHolding{patient, since}
	if !r.MeasuredAt.Before(since) {
		return patient, nil
	}
	return collections.DeviceHolder(tx, r.DeviceID, r.MeasuredAt)
}

// snapshotFor is the patient's picture for a reading.
func (k *cachedPatient) snapshotFor(tx core.App, patientID string, r vitals.Reading, now time.Time) (triage.Picture, error) {
	if k.snapshot == nil {
		return triage.ReadPicture(tx, patientID, &r, now)
	}
	snapshot := *k.snapshot
	return snapshot, snapshot.Weigh(tx, &r, now)
}

// update keeps the picture as it is after a reading, in step with what was stored. Escalations are not remembered: the clock
// moves them too.
func (k *cachedPatient) update(effects Effects, outcome Outcome, now time.Time) {
	snapshot := effects.SnapshotAfter
	if len(snapshot.Escalations) > 0 {
		k.snapshot = nil
		return
	}
	raised := len(snapshot.Open)
	for i := len(outcome.Alerts) - 1; i >= 0; i-- { // the new ones stand last, in the order in which they were stored
		if !effects.Alerts[i].Over() {
			raised--
			snapshot.Open[raised].ID = outcome.Alerts[i].ID
		}
	}
	snapshot.Recent = slices.DeleteFunc(slices.Clone(snapshot.Recent), func(a triage.Raised) bool { return !triage.Counts(a, now) })
	k.snapshot = &snapshot
}

// storedInstant is a moment as a database column gives it back.
func storedInstant(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }
