package observations

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/groupcommit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// largestGroup bounds how many readings one transaction takes.
const largestGroup = 256

// Writer commits readings in groups, so that the cost of making a commit durable is shared, and answers every sender after the commit.
type Writer struct {
	engine     *Engine
	clock      func() time.Time
	stored     func([]Outcome)
	log        *slog.Logger
	group      *groupcommit.Group[Submission, Outcome]
	memory     *memory
	statements collections.Statements
	pulse      atomic.Int64 // when the commit under way began, in Unix nanoseconds; idle or notRunning
}

// What the pulse says besides a time.
const (
	notRunning = 0
	idle       = 1
)

// submitted is one sender's, and the answer.
type submitted = groupcommit.Item[Submission, Outcome]

// NewWriter returns a writer; stored is called after each commit with what was stored anew, and must not block.
func NewWriter(engine *Engine, clock func() time.Time, log *slog.Logger, stored func([]Outcome)) *Writer {
	w := &Writer{engine: engine, clock: clock, stored: stored, log: log, memory: newMemory()}
	w.group = groupcommit.New(groupcommit.Options[Submission, Outcome]{
		Store: w.store, Failed: w.fail, After: w.finish, Most: largestGroup, Log: log,
	})
	return w
}

// QueueDepth is how many readings wait.
func (w *Writer) QueueDepth() int { return w.group.Waiting() }

// Busy reports whether somebody waits for a reading to be stored.
func (w *Writer) Busy() bool { return w.QueueDepth() > 0 || w.pulse.Load() > idle }

// Alive reports whether readings are being stored: the writer runs, and no commit has lasted longer than patience.
func (w *Writer) Alive(now time.Time, patience time.Duration) bool {
	switch began := w.pulse.Load(); began {
	case notRunning:
		return false
	case idle:
		return true
	default:
		return now.Sub(time.Unix(0, began)) <= patience
	}
}

// Submit hands over a reading and returns once it is durably stored, or refused. When ctx ends first the reading may
// still be stored; sending it again is then answered as a duplicate.
func (w *Writer) Submit(ctx context.Context, s Submission) (Outcome, error) {
	outcome, err := w.group.Submit(ctx, s)
	return outcome, waited(err)
}

// waited says to the sender why a reading was not handed over.
func waited(err error) error {
	switch {
	case errors.Is(err, groupcommit.ErrFull):
		return unavailable("Too many readings are waiting.").After(time.Second)
	case errors.Is(err, groupcommit.ErrStopped):
		return unavailable("The service is stopping.").After(time.Second)
	}
	return err
}

func unavailable(detail string) *fault.Error {
	return fault.New(fault.Unavailable, "service_unavailable", detail)
}

// Run commits what arrives until ctx ends and the queue is empty. A writer runs once.
func (w *Writer) Run(ctx context.Context, app core.App) {
	w.pulse.Store(idle)
	defer w.pulse.Store(notRunning)
	w.group.Run(ctx, app)
}

// store writes a group in one transaction. An error may have left half a reading behind.
func (w *Writer) store(app core.App, group []*submitted) error {
	w.pulse.CompareAndSwap(idle, w.clock().UnixNano()) // one stored on its own belongs to the commit of its group
	stored := false
	defer func() {
		if !stored {
			w.memory.forgetAll() // it may have learnt what was rolled back
		}
	}()
	err := app.RunInTransaction(func(tx core.App) error {
		tx = w.statements.In(tx)
		b, err := newBatch(tx)
		if err != nil {
			return err
		}
		if err := w.memory.catchUp(tx, b.trail.Head()); err != nil {
			return err
		}
		if err := w.ingest(tx, b, inOrder(group)); err != nil {
			return err
		}
		w.memory.head = b.trail.Head()
		return b.store(tx)
	})
	stored = err == nil
	return err
}

// ingest stores a group in its order. One that is refused leaves nothing behind.
func (w *Writer) ingest(tx core.App, b *batch, group []*submitted) error {
	misled, anyRefused := false, false
	for i, r := range group {
		now := w.clock()
		in := w.engine.following(r.In, group[i+1:], now)
		misled = misled || len(in.Following) > len(r.In.Following)
		r.Out, r.Err = w.engine.ingest(tx, b, w.memory, in, now)
		if _, refused := errors.AsType[*fault.Error](r.Err); r.Err != nil && !refused {
			return r.Err
		}
		anyRefused = anyRefused || r.Err != nil
	}
	if misled && anyRefused {
		return errMisled
	}
	return nil
}

func (w *Writer) fail(r *submitted) {
	w.log.Error("reading not stored", slog.Any("error", r.Err))
	r.Err = unavailable("The reading could not be stored.").Because(r.Err)
}

// finish tells of what a group stored anew.
func (w *Writer) finish(group []*submitted) {
	defer w.pulse.Store(idle)
	var stored []Outcome
	for _, r := range group {
		if r.Err == nil && !r.Out.Duplicate && !r.Out.Conflict {
			stored = append(stored, r.Out)
		}
	}
	if len(stored) > 0 {
		w.stored(stored)
	}
}

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
