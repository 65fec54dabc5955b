package ingest

import (
	"cmp"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ReasonReadingMissing is the code of an addition whose reading has not come.
const ReasonReadingMissing = "reading_missing"

// mergePartial adds to a stored reading what its device measured with it and its vendor sent by itself. A value that is there is never
// changed. The rules judge what is new; what follows from it follows as if it had come with the reading, but it makes no second
// reading, day or delivery: where the EMR has the reading already, its copy follows.
// Source: docs/decisions/gateway.md, "Other device vendors"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (e *Evaluator) mergePartial(tx core.App, b *writeBatch, m *patientCache, s Submission, now time.Time) (Outcome, error) {
	record, err := collections.FindObservationByGatewayKey(tx, s.GatewayKey)
	if collections.Missing(err) {
		return Outcome{}, fault.State(ReasonReadingMissing, "The reading that this belongs to has not come.")
	}
	if err != nil {
		return Outcome{}, err
	}
	o := ObservationFromRecord(record)
	before := o.Reading.ValuesKey()
	whole, fits := o.Reading.Add(s.Reading)
	switch {
	case !fits || o.PatientID != s.PatientID || o.EnteredInError:
		return Outcome{Observation: o, Conflict: true}, nil
	case whole.ValuesKey() == before:
		return Outcome{Observation: o, Duplicate: true}, nil
	}
	patient, err := e.findPatient(tx, m, s)
	if err != nil {
		return Outcome{}, err
	}
	o.Reading, o.UpdatedAt, o.addition = whole, now, &s.Reading
	doubted := o.Review == Suspect
	if !doubted {
		o.setConfirmation(s, now)
	}
	if o.FHIRStatus != "" {
		o.FHIRVersion, o.TransformedAt = o.FHIRVersion+1, now
	}
	if o.readingKey, err = o.mergedKey(tx, record.GetString(collections.ObservationReadingKey)); err != nil {
		return Outcome{}, err
	}
	record.Load(o.columns())
	changed := append(s.Reading.Columns(), collections.ObservationFHIRVersion, collections.ObservationTransformedAt,
		collections.ObservationReadingKey, collections.ColumnUpdatedAt)
	if s.ConfirmedBy != "" && !doubted {
		changed = append(changed, collections.ObservationReviewState, collections.ObservationConfirmedBy, collections.ObservationConfirmedAt)
	}
	if err := collections.Update(tx, record, changed...); err != nil {
		return Outcome{}, err
	}
	if doubted { // what comes to a reading that is not judged is not judged either
		return auditMerged(b, o, s.By, now)
	}
	if err := emr.Correct(tx, o.ID, now); err != nil {
		return Outcome{}, err
	}
	if s.skipsEvaluation() {
		return auditMerged(b, o, s.By, now)
	}
	return e.evaluateAndApply(tx, b, o, patient, s, now)
}

// mergedKey is the key of the whole reading. One that came another way before has it: then the completed one keeps its own.
func (o Observation) mergedKey(tx core.App, own string) (string, error) {
	o.readingKey = readingKey(o.PatientID, o.Reading)
	_, err := o.findStored(tx)
	switch {
	case own == "" || err == nil:
		return own, nil
	case collections.Missing(err):
		return o.readingKey, nil
	}
	return "", err
}

// Submission is a checked reading on its way in.
type Submission struct {
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
	// Origin is that of the source when it is "".
	Origin vitals.Origin
	// GatewayKey is the deduplication key of a gateway event; "" for readings from anywhere else.
	GatewayKey string
	// Partial readings may have come without what their device measured with them: their vendor may send it by itself, as an
	// Addition to the reading under the GatewayKey.
	Partial, Addition bool
	// Repeatable readings are stored however often they come; only for tests of the gateway.
	AllowDuplicates bool
	// ConfirmedBy is who vouches for values that no device should report; "" where nobody had to.
	ConfirmedBy string
	// UsesReceiptTime readings carry the time of receipt, because their device's clock was ahead; somebody vouches for it.
	UsesReceiptTime bool
	// Undated readings carry a time at which they cannot have been measured: they are kept and not judged.
	WrongClock bool
	// Device is what the gateway told of the device along with the reading.
	Device devices.Envelope
	// Following are readings that came along with this one, of the same patient, and were measured after it: those of them that a late
	// reading is superseded by. It is only told of those that will be stored, or are.
	NewerInBatch []vitals.Reading
	// Dismissed says whether somebody has discarded this very measurement before, and why; asked only where the device has said this time
	// before, when it lay in the future. Nil for never.
	DiscardedBefore func(tx core.App) (why phi.Text, dismissed bool, err error)
	// By says who sent it, for the audit trail.
	By audit.Actor
	// ReceivedAt is when it reached the door.
	ReceivedAt time.Time
	// key is that of the reading, computed where nobody waits; "" where it was not.
	key string
	// along is there instead of a reading: what others want done in the transaction of readings.
	joinTx func(tx core.App) error
}

// origin says who vouches for the reading.
func (s Submission) origin() vitals.Origin { return cmp.Or(s.Origin, s.Source.Origin()) }

// Outcome is what became of a submission.
type Outcome struct {
	Observation Observation
	// Duplicate: this very reading was stored before; nothing was written.
	Duplicate bool
	// KeyAlias: it is a duplicate under a key of the gateway's that no reading has.
	KeyAlias bool
	// Conflict: the gateway sent other values under a key it had used before; nothing was written.
	Conflict bool
	// Completed: the reading was stored before, and has more values now.
	Merged bool
	// CheckDevice: what the reading says of its device asks for more than storing it, see [devices.Engine.CheckDevice].
	CheckDevice bool
	Alerts      []RaisedAlert
	// EscalationID and TransmissionID are "" when there is none.
	EscalationID   string
	TransmissionID string
}

// RaisedAlert is an alert that the reading raised.
type RaisedAlert struct {
	ID      string // record id
	Level   string
	Type    string
	Message string // may be read beside the patient's name: never log it
}
