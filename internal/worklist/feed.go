// Package worklist remembers what a question comes to for each patient, so that a list of everybody is read from memory, and asks anew only about those
// whom something may have touched since. It knows how a change touches a patient; it knows none of the questions, and works nothing out itself: an
// answer is what the question's own function says, remembered or not.
//
// Whoever changes something, in whatever way, leaves a row among the changes in the same transaction: triggers see to that. Before each answer the
// rows since the last one are read, and name the patients to ask about anew. What is not understood touches everybody. Source:
// docs/decisions/billing.md, "Worklists".
package worklist

import (
	"sync"
	"unique"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// untouched are the types of changes that say nothing about what any of the questions is asked of: alerts and their consequences, deliveries, teams and bounds.
var untouched = []string{
	collections.ChangeAlert, collections.ChangeCareTeam, collections.ChangeEscalation, collections.ChangeSnooze, collections.ChangeTransmission,
	collections.ChangeVitalConfig,
}

// ofPatient are the types that touch whom they are about, and nobody else.
var ofPatient = map[string]bool{
	collections.ChangeClaim: true, collections.ChangeConsent: true, collections.ChangeObservation: true, collections.ChangeOrder: true,
	collections.ChangePatient: true, collections.ChangeTimeEntry: true,
}

// notedOfPatient are the noted tables that do so.
var notedOfPatient = map[string]bool{
	collections.BillingEntries: true, collections.Consents: true, collections.DeviceAssignments: true, collections.NotedDays: true,
	collections.Observations: true, collections.TimeEntries: true,
}

// farBehind is how many changes are read to learn whom they touched; beyond, everybody is taken to be.
const farBehind = 200_000

// Feed reads the changes for all who remember answers. It holds no database: whoever asks hands it over, and another one touches everybody.
type Feed struct {
	lock    sync.Mutex
	folder  string             // of the database that was read last
	head    collections.Change // the last row that was read
	keepers []Keeper
}

// Keeper remembers what rests on what is in the database.
type Keeper interface {
	// Touch is told of patients about whom something may have changed, and TouchAll that it may have been anybody, or what is nobody's. Neither may
	// ask anything.
	Touch(patients []Patient)
	TouchAll()
}

// catchUp tells the keepers whom the changes since the last call may have touched. What is read from the database after it is no older than what it
// told of; what is committed meanwhile the next call tells.
func (f *Feed) catchUp(app core.App) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	last, err := collections.LastChange(app)
	if err != nil {
		return err
	}
	switch {
	case f.folder == app.DataDir() && last == f.head:
		return nil
	case f.folder != app.DataDir() || last.Seq <= f.head.Seq || last.Seq-f.head.Seq > farBehind:
		f.touchAll()
	default:
		if err := f.read(app, last.Seq); err != nil {
			return err
		}
	}
	f.folder, f.head = app.DataDir(), last
	return nil
}

// read tells of the changes since the last call, if all of them are still there: the oldest are removed first.
func (f *Feed) read(app core.App, upTo int64) error {
	rows, err := collections.TouchedBetween(app, f.head.Seq, upTo, untouched)
	if err != nil {
		return err
	}
	head, err := collections.ChangeAt(app, f.head.Seq)
	if err != nil && !collections.Missing(err) {
		return err
	}
	ids, devices, understood := touchedBy(rows)
	if head != f.head || !understood {
		f.touchAll()
		return nil
	}
	if len(devices) > 0 {
		held, err := collections.EverHeld(app, devices)
		if err != nil {
			return err
		}
		ids = append(ids, held...)
	}
	patients := Patients(ids...)
	for _, k := range f.keepers {
		k.Touch(patients)
	}
	return nil
}

// touchedBy are the patients whom changes touched, and the devices whose holders they touched, unless they may have touched anybody.
func touchedBy(rows []collections.Touched) (ids, devices []string, understood bool) {
	for _, row := range rows {
		switch {
		case row.Type == collections.ChangeDevice: // its set-up counts for whoever held it then
			devices = append(devices, row.Record)
			if row.Patient != "" {
				ids = append(ids, row.Patient)
			}
		case row.Patient != "" && (ofPatient[row.Type] || row.Type == "" && notedOfPatient[row.Record]):
			ids = append(ids, row.Patient)
		default:
			return nil, nil, false
		}
	}
	return ids, devices, true
}

func (f *Feed) touchAll() {
	for _, k := range f.keepers {
		k.TouchAll()
	}
}

// Tell has a keeper told from now on.
func (f *Feed) Tell(k Keeper) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.keepers = append(f.keepers, k)
}

// Patient is the id of a patient, which is in memory once, whoever keeps something of them.
type Patient = unique.Handle[string]

// Patients are some by their ids.
func Patients(ids ...string) []Patient {
	list := make([]Patient, len(ids))
	for i, id := range ids {
		list[i] = unique.Make(id)
	}
	return list
}
