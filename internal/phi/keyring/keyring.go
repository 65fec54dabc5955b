// Package keyring tracks which encryption keys a data folder needs, and rotates sealed values to a new key. A key is registered, with a
// check value that only it opens, before it seals its first value, and unregistered only when no value is sealed under it. Therefore a
// process with a ring that lacks a key, or has a different key with the same id, fails at startup, regardless of the size of the database and
// of earlier crashes. The running service publishes its keys, so that no command seals under a key that the service lacks.
//
// Rotation reads every sealed column of every collection in batches, seals the values again under the first key of the ring, and writes each
// one only if the old ciphertext is still stored, so that concurrent changes win. Ciphertexts name their key, so an interrupted rotation
// resumes where it stopped, and a second one finds nothing to do. The old keys are retired last: until then every start requires them.
//
// Entries of the audit trail are append-only and never sealed again; the report names the keys that they still need.
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
	// newestRows is the number of rows per collection that every start checks for values written by another program.
	newestRows = 20
	// samples is the number of values per column that must fail to open before a key counts as a different key with the same id.
	samples = 100
)

// ErrServiceSilent means that the running service has not published its keys: it is starting, or is an earlier version.
var ErrServiceSilent = errors.New("the running service has not published its encryption keys: wait until it listens, or restart it with this version")

// AdmitService checks the service's ring against a data folder and publishes its keys until WithdrawService. It fails and names the missing keys if
// the ring lacks keys that stored values need. migrate updates the schema after the check, so a rejected process changes nothing.
func AdmitService(app core.App, ring *phi.KeyRing, migrate func() error) error {
	return admit(app, ring, migrate, func(tx core.App) error { return collections.StoreServiceKeys(tx, ring) })
}

// WithdrawService removes the published keys when the service stops.
func WithdrawService(app core.App) error { return collections.DeleteServiceKeys(app) }

// AdmitCommand admits a command to a data folder until release, with or without a running service. It fails like AdmitService, and also if the running
// service lacks the key that the command seals under. It checks that first, because the check is cheap.
func AdmitCommand(app core.App, ring *phi.KeyRing, migrate func() error) (release func() error, err error) {
	release, err = backup.LockSealing(app.DataDir()) // first: prevents the retirement of keys
	if err != nil {
		return nil, err
	}
	checkHeld := func(app core.App) error { return checkService(app, ring) }
	if err = checkHeld(app); err == nil {
		err = admit(app, ring, migrate, checkHeld)
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// Check fails if a ring lacks keys that stored values need. It changes nothing.
func Check(app core.App, ring *phi.KeyRing) error {
	_, err := findUnregistered(app, ring)
	return err
}

// admit registers the primary key. It does so in one transaction, so of two concurrent processes with incompatible rings, the second sees the keys
// of the first and fails.
func admit(app core.App, ring *phi.KeyRing, migrate func() error, service func(tx core.App) error) error {
	unregistered, err := findUnregistered(app, ring)
	if err != nil {
		return err
	}
	if err := migrate(); err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := checkRing(tx, ring, nil); err != nil {
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

// findUnregistered checks the registered keys and returns the unregistered keys that stored values use. It reads all rows of a database without a key
// register, and only the newest rows of others.
func findUnregistered(app core.App, ring *phi.KeyRing) (unregistered []string, err error) {
	registered, err := registeredKeys(app)
	if err != nil {
		return nil, err
	}
	newest := newestRows
	if len(registered) == 0 {
		newest = 0
	}
	isRegistered := func(id string) bool {
		return slices.ContainsFunc(registered, func(k collections.RingKey) bool { return k.ID == id })
	}
	tables, err := collections.SealedTables(app)
	if err != nil {
		return nil, err
	}
	tablesByKey := map[string][]collections.SealedTable{}
	for _, t := range tables {
		ids, err := collections.KeyIDsIn(app, t, newest)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if !isRegistered(id) {
				tablesByKey[id] = append(tablesByKey[id], t)
			}
		}
	}
	var missing []string
	for id, tables := range tablesByKey {
		opens, err := opensWithRing(app, ring, tables, id)
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
	return unregistered, checkRing(app, ring, missing)
}

func opensWithRing(app core.App, ring *phi.KeyRing, tables []collections.SealedTable, id string) (bool, error) {
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

// checkRing fails if the ring lacks registered keys or the key of the index key, or if missing is not empty.
func checkRing(app core.App, ring *phi.KeyRing, missing []string) error {
	registered, err := registeredKeys(app)
	if err != nil {
		return err
	}
	for _, key := range registered {
		if !ring.MatchesCheckValue(key.ID, key.Check) {
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

// registeredKeys returns the registered keys. A database of an older version, for example from a backup, has no register and returns none.
func registeredKeys(app core.App) ([]collections.RingKey, error) {
	if !app.HasTable("ring_keys") {
		return nil, nil
	}
	return collections.RingKeys(app)
}

// checkService fails if a running service cannot open values that the ring seals. It also fails if the service is of a version that does not publish its
// keys, since the command must not migrate the schema of a running service.
func checkService(app core.App, ring *phi.KeyRing) error {
	running, err := backup.IsServed(app.DataDir())
	if err != nil || !running {
		return err
	}
	if !app.HasTable("service_keys") {
		return ErrServiceSilent
	}
	published, err := collections.ServiceKeys(app)
	if err != nil {
		return err
	}
	if len(published) == 0 {
		return ErrServiceSilent
	}
	for _, key := range published {
		if key.ID == ring.PrimaryKeyID() && ring.MatchesCheckValue(key.ID, key.Check) {
			return nil
		}
	}
	return fmt.Errorf("the running service does not hold key %s, which this command would seal under: add it to the service's keys and restart it first",
		ring.PrimaryKeyID())
}

// Retirement unregisters old keys. It must start before the values are counted, so that it detects processes that start to seal under an old key
// after the count.
type Retirement struct {
	ring *phi.KeyRing
	old  []collections.RingKey
}

// BeginRetirement returns a retirement of all registered keys except the ring's first.
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

// Finish seals the index key again and unregisters each old key that no value uses, in one transaction and as the last step of a rotation. A rotation
// that was killed earlier leaves a folder that still requires all keys. values counts the values by key; alone means that no other command works on
// the folder. Finish returns the keys that could not be retired, with the reason.
func (r *Retirement) Finish(app core.App, values map[string]int, alone bool) (unretired map[string]string, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		unretired = map[string]string{}
		serviceKey, err := serviceSealingKey(tx)
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
			case serviceKey == key.ID:
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
					reason = "another process started to seal under it"
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

// serviceSealingKey returns the id of the key that the running service seals under; "" if no service is running.
func serviceSealingKey(tx core.App) (string, error) {
	running, err := backup.IsServed(tx.DataDir())
	if err != nil || !running {
		return "", err
	}
	published, err := collections.ServiceKeys(tx)
	if err != nil {
		return "", err
	}
	for _, key := range published {
		if key.Seals {
			return key.ID, nil
		}
	}
	return "", ErrServiceSilent
}
