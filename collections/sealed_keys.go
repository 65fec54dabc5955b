package collections

import (
	"errors"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// blindIndexKey is the name of the blind-index key among the sealed keys.
const blindIndexKey = "blind_index"

// LoadIndexKey opens the blind-index key. It is created once and stored sealed, so it survives every change of encryption keys. If no key of
// the ring opens it, the ring belongs to another database.
func LoadIndexKey(app core.App, ring *phi.KeyRing) (phi.IndexKey, error) {
	sealed, stored, err := sealedIndexKey(app)
	if err != nil {
		return phi.IndexKey{}, err
	}
	if !stored {
		return makeIndexKey(app, ring)
	}
	key, err := ring.OpenIndexKey(sealed)
	return key, wrap(err, "the encryption keys do not open this database")
}

func makeIndexKey(app core.App, ring *phi.KeyRing) (phi.IndexKey, error) {
	if used, err := IsInUse(app); err != nil || used {
		return phi.IndexKey{}, errors.Join(err, errors.New("the sealed index key is gone from a database in use: restore a backup"))
	}
	key := phi.NewIndexKey()
	sealed, err := ring.SealIndexKey(key)
	if err == nil {
		_, err = app.DB().NewQuery(`INSERT INTO sealed_keys (name, sealed) VALUES ({:name}, {:sealed})`).
			Bind(dbx.Params{"name": blindIndexKey, "sealed": sealed}).Execute()
	}
	if err != nil {
		return phi.IndexKey{}, wrap(err, "store sealed index key")
	}
	return key, nil
}

// sealedIndexKey returns the stored index key, if there is one.
func sealedIndexKey(app core.App) (sealed string, stored bool, err error) {
	err = app.DB().NewQuery(`SELECT sealed FROM sealed_keys WHERE name = {:name}`).Bind(dbx.Params{"name": blindIndexKey}).Row(&sealed)
	return sealed, err == nil, wrap(IgnoreNotFound(err), "read sealed index key")
}

// IndexKeyID returns the id of the key that seals the blind-index key, or "" if there is no key or no table yet.
func IndexKeyID(app core.App) (string, error) {
	if !app.HasTable("sealed_keys") {
		return "", nil
	}
	sealed, _, err := sealedIndexKey(app)
	id, _ := phi.KeyID(sealed)
	return id, err
}

// ResealIndexKey seals the blind-index key under the ring's first key.
func ResealIndexKey(app core.App, ring *phi.KeyRing) error {
	sealed, _, err := sealedIndexKey(app)
	if err != nil || !ring.NeedsRotation(sealed) {
		return err
	}
	return resealIndexKey(app, ring, sealed)
}

// resealIndexKey stores the index key as the ring seals now, unless another one was stored in between.
func resealIndexKey(app core.App, ring *phi.KeyRing, sealed string) error {
	key, err := ring.OpenIndexKey(sealed)
	if err != nil {
		return fmt.Errorf("open the index key: %w", err)
	}
	fresh, err := ring.SealIndexKey(key)
	if err == nil {
		_, err = app.DB().NewQuery(`UPDATE sealed_keys SET sealed = {:fresh} WHERE name = {:name} AND sealed = {:sealed}`).
			Bind(dbx.Params{"name": blindIndexKey, "fresh": fresh, "sealed": sealed}).Execute()
	}
	return wrap(err, "store sealed index key")
}

// AuditRowsByKey counts the rows of the audit log that need each key.
func AuditRowsByKey(app core.App) (map[string]int, error) {
	return readMap[int]("count audit rows by key", app.DB().NewQuery(`SELECT key, COUNT(DISTINCT id) FROM (
			SELECT id, substr(changes, 4, instr(substr(changes, 4), ':') - 1) AS key FROM audit_log WHERE changes GLOB 'v[12]:*'
			UNION ALL SELECT id, substr(reason, 4, instr(substr(reason, 4), ':') - 1) FROM audit_log WHERE reason GLOB 'v[12]:*'
		) GROUP BY key`))
}
