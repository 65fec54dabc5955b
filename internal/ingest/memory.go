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
	remembered = 16_384 // patients, and devices
	// farBehind is how many foreign audit entries are read to learn what changed; beyond, everything is forgotten.
	farBehind = 500
)

// memory is what the writer knows of patients from its last transactions, so that most readings ask the database nothing
// before they are stored. It is true as long as nobody else has changed what it holds, and whoever does appends to the audit
// trail in the same transaction: what was appended since the writer's own last entry names the patients to forget.
// A nil memory remembers nothing.
type memory struct {
	head     string // id of the audit entry up to which this is true
	patients map[string]*known
	devices  map[string]holding
}

// known is a patient as far as storing a reading is concerned.
type known struct {
	holder  holder
	picture *triage.Picture // nil: to be read
	alive   string          // the first day known to be none before the patient's birth; "" for none
}

// holding is the open assignment of a device; patient is "" while nobody has it.
type holding struct {
	patient string
	since   time.Time
}

func newMemory() *memory {
	return &memory{patients: map[string]*known{}, devices: map[string]holding{}}
}

func (m *memory) forgetAll() {
	m.head = ""
	clear(m.patients)
	clear(m.devices)
}

// catchUp forgets what others changed since the memory was true. It runs first in each transaction.
func (m *memory) catchUp(tx core.App, head string) error {
	if m.head == "" || len(m.patients) > remembered || len(m.devices) > remembered {
		m.forgetAll()
		return nil
	}
	if head == m.head {
		return nil
	}
	marks, err := collections.AuditMarksAfter(tx, m.head, farBehind)
	if err != nil {
		return err
	}
	if len(marks) == farBehind {
		m.forgetAll()
		return nil
	}
	for _, mark := range marks {
		m.forget(mark)
	}
	return nil
}

// without says nothing about what is remembered: sign-ins, mails, money, deliveries.
var without = []string{
	audit.ResourceAnnouncement, audit.ResourceAuditEvent, audit.ResourceBillingEntry, audit.ResourceBillingRun, audit.ResourceClaim,
	audit.ResourceEMRConnection, audit.ResourceEMRPatient, audit.ResourceEndpoint, audit.ResourceGatewayEvent, audit.ResourceLoginKey,
	audit.ResourceMail, audit.ResourceService, audit.ResourceSuperuser, audit.ResourceTimeEntry, audit.ResourceTopic, audit.ResourceTransmission,
}

// forget drops what an entry says was changed; an entry that is not understood drops everything.
func (m *memory) forget(mark collections.AuditMark) {
	switch {
	case mark.Action == string(audit.Read) || slices.Contains(without, mark.ResourceType) || (mark.Patient == "" && mark.ResourceType == ""):
	case mark.ResourceType == audit.ResourceUser && mark.Action == string(audit.Execute): // signing in and out
	case mark.ResourceType == audit.ResourceDevice:
		clear(m.devices)
		delete(m.patients, mark.Patient)
	case mark.Patient != "":
		delete(m.patients, mark.Patient)
	default:
		m.forgetAll()
	}
}

// patient is what is known of a patient; what is not is read.
func (m *memory) patient(tx core.App, id string) (*known, error) {
	if m != nil && m.patients[id] != nil {
		return m.patients[id], nil
	}
	found, err := loadHolder(tx, id)
	if err != nil {
		return nil, err
	}
	k := &known{holder: found}
	if m != nil {
		m.patients[id] = k
	}
	return k, nil
}

// deviceHolder is who held the device of a reading when it was taken; "" for nobody.
func (m *memory) deviceHolder(tx core.App, r vitals.Reading) (string, error) {
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
	m.devices[r.DeviceID] = holding{patient, since}
	if !r.MeasuredAt.Before(since) {
		return patient, nil
	}
	return collections.DeviceHolder(tx, r.DeviceID, r.MeasuredAt)
}

// pictureFor is the patient's picture for a reading.
func (k *known) pictureFor(tx core.App, patientID string, r vitals.Reading, now time.Time) (triage.Picture, error) {
	if k.picture == nil {
		return triage.ReadPicture(tx, patientID, &r, now)
	}
	picture := *k.picture
	return picture, picture.Weigh(tx, &r, now)
}

// learn keeps the picture as it is after a reading, in step with what was stored. Escalations are not remembered: the clock
// moves them too.
func (k *known) learn(effects Effects, outcome Outcome, now time.Time) {
	picture := effects.After
	if len(picture.Escalations) > 0 {
		k.picture = nil
		return
	}
	raised := len(picture.Open)
	for i := len(outcome.Alerts) - 1; i >= 0; i-- { // the new ones stand last, in the order in which they were stored
		if !effects.Alerts[i].Over() {
			raised--
			picture.Open[raised].ID = outcome.Alerts[i].ID
		}
	}
	picture.Recent = slices.DeleteFunc(slices.Clone(picture.Recent), func(a triage.Raised) bool { return !triage.Counts(a, now) })
	k.picture = &picture
}

// stored is a moment as a database column gives it back.
func stored(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }
