package keyring

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/phi"
)

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
func (r *Retirement) Finish(app core.App, values map[string]int, alone bool) (kept map[string]string, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		kept = map[string]string{}
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
				done, err := collections.ForgetRingKey(tx, key)
				if err != nil {
					return err
				}
				if !done {
					reason = "another process has begun to seal under it"
				}
			}
			if reason != "" {
				kept[key.ID] = reason
			}
		}
		return nil
	})
	return kept, err
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
