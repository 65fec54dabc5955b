// Package keyring knows which encryption keys a data folder needs and who may seal in it. Every key that seals is registered before its
// first value, with a check value that it alone opens, and leaves the register only when nothing lies under it any more: so a process with a
// ring that lacks a key, or has other bytes under its id, is turned away at the door, at any size of the database, whatever was killed
// before. The running service says which keys it holds, and nobody beside it seals under one that it lacks.
//
// Entries of the audit log are exempt: they cannot be sealed anew. The package refuses to know how values are sealed anew, and
// where the keys come from.
package keyring

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// newestRows of each collection are looked at in every start, for values that something other than this program put there.
	newestRows = 20
	// samples of each column must be damaged before a key is taken for another one of the same id.
	samples = 100
)

// ErrServiceSilent means that a service runs which has not said yet which keys it holds: it is starting, or is of an earlier version.
var ErrServiceSilent = errors.New("the running service has not said which encryption keys it holds: wait until it listens, or restart it with this version")

// Admit lets the service have a data folder, and says which keys it holds until Withdraw. It fails, naming them, when the ring lacks keys that
// stored values need. migrate brings the schema up to date once it is known that it does not: whoever is refused has changed nothing.
func Admit(app core.App, ring *phi.KeyRing, migrate func() error) error {
	return admit(app, ring, migrate, func(tx core.App) error { return collections.StoreServiceKeys(tx, ring) })
}

// Withdraw says that the service has ended.
func Withdraw(app core.App) error { return collections.DeleteServiceKeys(app) }

// AdmitBeside lets a command work on a data folder, beside the service when one runs, until release. It fails like Admit, and also when
// the running service does not hold the very key that the command seals under: that costs little, so it is asked first.
func AdmitBeside(app core.App, ring *phi.KeyRing, migrate func() error) (release func() error, err error) {
	release, err = backup.Seal(app.DataDir()) // first: from here on no key is retired
	if err != nil {
		return nil, err
	}
	held := func(app core.App) error { return heldByService(app, ring) }
	if err = held(app); err == nil {
		err = admit(app, ring, migrate, held)
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// Check says whether a ring has all keys that stored values need, and changes nothing.
func Check(app core.App, ring *phi.KeyRing) error {
	_, err := examine(app, ring)
	return err
}

// admit registers the key that seals. One transaction each orders whoever comes in: of two with rings that do not fit each other, the second
// sees what the first has registered or announced.
func admit(app core.App, ring *phi.KeyRing, migrate func() error, service func(tx core.App) error) error {
	unregistered, err := examine(app, ring)
	if err != nil {
		return err
	}
	if err := migrate(); err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := fits(tx, ring, nil); err != nil {
			return err
		}
		if err := service(tx); err != nil {
			return err
		}
		for _, id := range append(unregistered, ring.PrimaryKeyID()) {
			if err := collections.RegisterRingKey(tx, ring, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// examine looks at the register and at what lies there without being registered: everything in a folder from before there was a register,
// the newest rows in others.
func examine(app core.App, ring *phi.KeyRing) (unregistered []string, err error) {
	registered, err := registeredKeys(app)
	if err != nil {
		return nil, err
	}
	newest := newestRows
	if len(registered) == 0 {
		newest = 0
	}
	known := func(id string) bool {
		return slices.ContainsFunc(registered, func(k collections.RingKey) bool { return k.ID == id })
	}
	tables, err := collections.SealedTables(app)
	if err != nil {
		return nil, err
	}
	where := map[string][]collections.SealedTable{}
	for _, t := range tables {
		ids, err := collections.KeyIDsIn(app, t, newest)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if !known(id) {
				where[id] = append(where[id], t)
			}
		}
	}
	var missing []string
	for id, tables := range where {
		opens, err := opensAny(app, ring, tables, id)
		if err != nil {
			return nil, err
		}
		if opens {
			unregistered = append(unregistered, id)
		} else {
			missing = append(missing, id)
		}
	}
	slices.Sort(unregistered)
	return unregistered, fits(app, ring, missing)
}

func opensAny(app core.App, ring *phi.KeyRing, tables []collections.SealedTable, id string) (bool, error) {
	if !ring.Has(id) {
		return false, nil
	}
	for _, t := range tables {
		if opens, err := collections.OpensAny(app, ring, t, id, samples); opens || err != nil {
			return opens, err
		}
	}
	return false, nil
}

// fits fails when the ring lacks registered keys, the one of the index key, or those that are missing anyway.
func fits(app core.App, ring *phi.KeyRing, missing []string) error {
	registered, err := registeredKeys(app)
	if err != nil {
		return err
	}
	for _, key := range registered {
		if !ring.Holds(key.ID, key.Check) {
			missing = append(missing, key.ID)
		}
	}
	index, err := collections.IndexKeyID(app)
	if err != nil {
		return err
	}
	if index != "" && !ring.Has(index) {
		missing = append(missing, index)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("stored values need keys that the ring lacks or has with other bytes: %s", strings.Join(slices.Compact(missing), ", "))
}

// registeredKeys is empty for a database from before there was a register, which a backup may hold.
func registeredKeys(app core.App) ([]collections.RingKey, error) {
	if !app.HasTable("ring_keys") {
		return nil, nil
	}
	return collections.RingKeys(app)
}

// heldByService fails when a service runs that cannot open what the ring seals. One of a version that does not say what it holds is not to find
// another schema under it.
func heldByService(app core.App, ring *phi.KeyRing) error {
	running, err := backup.Served(app.DataDir())
	if err != nil || !running {
		return err
	}
	if !app.HasTable("service_keys") {
		return ErrServiceSilent
	}
	said, err := collections.ServiceKeys(app)
	if err != nil {
		return err
	}
	if len(said) == 0 {
		return ErrServiceSilent
	}
	for _, key := range said {
		if key.ID == ring.PrimaryKeyID() && ring.Holds(key.ID, key.Check) {
			return nil
		}
	}
	return fmt.Errorf("the running service does not hold key %s, which this command would seal under: add it to the service's keys and restart it first",
		ring.PrimaryKeyID())
}

// Retirement takes old keys off the register. It is begun before the values are counted, so that whoever begins to seal under an old key after
// that is noticed.
type Retirement struct {
	ring *phi.KeyRing
	old  []collections.RingKey
}

// BeginRetirement looks who may still seal under other keys than the ring's first.
func BeginRetirement(app core.App, ring *phi.KeyRing) (*Retirement, error) {
	r := &Retirement{ring: ring}
	registered, err := collections.RingKeys(app)
	if err != nil {
		return nil, err
	}
	for _, key := range registered {
		if key.ID != ring.PrimaryKeyID() {
			r.old = append(r.old, key)
		}
	}
	return r, nil
}

// Finish seals the index key anew and takes each old key off the register under which count finds nothing, both at once and last of all: a rotation that was
// killed before leaves a folder that asks for all of its keys. alone says whether no other command works on the folder. It returns the
// keys that had to stay, with the reason.
func (r *Retirement) Finish(app core.App, values map[string]int, alone bool) (unretired map[string]string, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		unretired = map[string]string{}
		sealing, err := serviceSeals(tx)
		if err != nil {
			return err
		}
		index, err := collections.IndexKeyID(tx)
		if err != nil {
			return err
		}
		if index != "" && values[index] == 0 {
			if err := collections.ResealIndexKey(tx, r.ring); err != nil {
				return err
			}
		}
		for _, key := range r.old {
			reason := ""
			switch {
			case values[key.ID] > 0:
				reason = fmt.Sprintf("%d values lie under it", values[key.ID])
			case sealing == key.ID:
				reason = "the running service seals under it"
			case !alone:
				reason = "another command works on the data folder"
			}
			if reason == "" {
				done, err := collections.DeleteRingKey(tx, key)
				if err != nil {
					return err
				}
				if !done {
					reason = "another process has begun to seal under it"
				}
			}
			if reason != "" {
				unretired[key.ID] = reason
			}
		}
		return nil
	})
	return unretired, err
}

// serviceSeals is the key under which the running service seals; "" without one.
func serviceSeals(tx core.App) (string, error) {
	running, err := backup.Served(tx.DataDir())
	if err != nil || !running {
		return "", err
	}
	said, err := collections.ServiceKeys(tx)
	if err != nil {
		return "", err
	}
	for _, key := range said {
		if key.Seals {
			return key.ID, nil
		}
	}
	return "", ErrServiceSilent
}
