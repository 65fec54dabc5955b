package collections

import (
	"fmt"
	"sync/atomic"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// AuditState is what the database itself keeps about its audit trail, as stored: how many entries it has and the hash of the last, up to which
// entry the hashes have no key and the hash there, and a seal over all four.
type AuditState struct {
	Entries     int64  `db:"entries"`
	Head        string `db:"head"`
	Unkeyed     int64  `db:"unkeyed"`
	UnkeyedHead string `db:"unkeyed_head"`
	Seal        string `db:"seal"`
}

// AuditEnd is where the trail ends, by its last row and by what is kept about it, both of one moment.
type AuditEnd struct {
	ID   string `db:"last_id"` // "" for an empty trail
	Hash string `db:"last_hash"`
	AuditState
	Kept bool `db:"kept"` // there is a state
}

// ReadAuditEnd reads where the trail ends. Inside a transaction it sees that transaction's rows.
func ReadAuditEnd(app core.App) (end AuditEnd, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT COALESCE(last.id, '') AS last_id, COALESCE(last.hash, '') AS last_hash,
		kept.id IS NOT NULL AS kept, COALESCE(kept.entries, 0) AS entries, COALESCE(kept.head, '') AS head,
		COALESCE(kept.unkeyed, 0) AS unkeyed, COALESCE(kept.unkeyed_head, '') AS unkeyed_head, COALESCE(kept.seal, '') AS seal
		FROM (SELECT 1) LEFT JOIN (SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1) AS last LEFT JOIN audit_state AS kept`).One(&end)
	return end, wrap(err, "read the end of the audit trail")
}

// HasAuditState reports whether the schema has come to keep a state; a database that a new version has not opened yet has none.
func HasAuditState(app core.App) (found bool, err error) {
	err = app.DB().NewQuery(`SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'audit_state')`).Row(&found)
	return found, wrap(err, "look for the audit trail's state")
}

// ReadAuditState reads what is kept about the trail and the id of its last row, which is all that an append needs; a missing row when nothing
// is kept. It is asked in every transaction, so it is short.
func ReadAuditState(tx core.App) (end AuditEnd, err error) {
	err = tx.NonconcurrentDB().NewQuery(`SELECT entries, head, unkeyed, unkeyed_head, seal, COALESCE((SELECT MAX(id) FROM audit_log), '') AS last_id FROM audit_state`).
		Row(&end.Entries, &end.Head, &end.Unkeyed, &end.UnkeyedHead, &end.Seal, &end.ID)
	end.Kept = err == nil
	if err != nil {
		err = fmt.Errorf("read the audit trail's state: %w", err)
	}
	return end, err
}

// ReadAuditEndBefore is ReadAuditEnd for a database whose schema keeps no state yet.
func ReadAuditEndBefore(app core.App) (end AuditEnd, err error) {
	end.ID, end.Hash, err = AuditHead(app)
	return end, err
}

// BeginAuditState stores the first state.
func BeginAuditState(tx core.App, s AuditState) error {
	return writeAuditState(tx, `INSERT INTO audit_state (id, entries, head, unkeyed, unkeyed_head, seal) VALUES (1, {:entries}, {:head}, {:unkeyed}, {:unkeyed_head}, {:seal})`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "unkeyed": s.Unkeyed, "unkeyed_head": s.UnkeyedHead, "seal": s.Seal})
}

// MoveAuditState stores where the trail ends now.
func MoveAuditState(tx core.App, s AuditState) error {
	return writeAuditState(tx, `UPDATE audit_state SET entries = {:entries}, head = {:head}, seal = {:seal}`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "seal": s.Seal})
}

func writeAuditState(tx core.App, sql string, values dbx.Params) error {
	_, err := tx.NonconcurrentDB().NewQuery(sql).Bind(values).Execute()
	return wrap(err, "store the audit trail's state")
}

// AuditKeys are the keys of the audit trail: one hashes its rows, one seals its state.
type AuditKeys struct{ Row, State []byte }

// auditKeys remembers the keys of the sealer in use: each entry needs them.
var auditKeys atomic.Pointer[keysOf]

type keysOf struct {
	sealer *phi.Sealer
	AuditKeys
}

// LoadAuditKeys derives the keys of the audit trail from the database's index key, so they outlive every rotation.
func LoadAuditKeys() (AuditKeys, error) {
	s := sealer.Load()
	if s == nil {
		return AuditKeys{}, errNoSealer
	}
	if known := auditKeys.Load(); known != nil && known.sealer == s {
		return known.AuditKeys, nil
	}
	row, err := s.DeriveKey("audit chain")
	if err != nil {
		return AuditKeys{}, err
	}
	state, err := s.DeriveKey("audit state")
	if err != nil {
		return AuditKeys{}, err
	}
	auditKeys.Store(&keysOf{s, AuditKeys{row, state}})
	return AuditKeys{row, state}, nil
}

// Format shows nothing of the keys.
func (AuditKeys) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("[secret]")) }

// EverUsed reports whether the database has been worked with: somebody was entered, or a number given out. A fresh one has neither.
func EverUsed(app core.App) (used bool, err error) {
	err = app.DB().NewQuery(`SELECT EXISTS (SELECT 1 FROM audit_log) OR EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM patients)
		OR EXISTS (SELECT 1 FROM sequences) OR EXISTS (SELECT 1 FROM gateway_events)`).Row(&used)
	return used, wrap(err, "look whether the database was used")
}

// BeforeAuditKeys reports whether the database's index key was sealed before audit trails had a key: then no state can be expected. Nobody
// without the keys can make that form; one that was copied before can be put back, for as long as its key is in the ring. No trail works
// without the index key.
func BeforeAuditKeys(app core.App) (bool, error) {
	s := sealer.Load()
	if s == nil {
		return false, errNoSealer
	}
	sealed, _, err := sealedIndexKey(app)
	return err == nil && s.BeforeAuditKeys(sealed), err
}

// MarkAuditKeys seals the index key anew, in the form that says that the trail has a state from now on.
func MarkAuditKeys(tx core.App) error {
	s := sealer.Load()
	if s == nil {
		return errNoSealer
	}
	sealed, _, err := sealedIndexKey(tx)
	if err != nil || !s.BeforeAuditKeys(sealed) {
		return err
	}
	return resealIndexKey(tx, s.KeyRing, sealed)
}
