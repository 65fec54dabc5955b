package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// keys make and check the hashes of rows and the seal of the state. They are derived from the database's index key: who has the file alone
// cannot make either, and no rotation changes them.
type keys struct{ row, state hash.Hash }

func loadKeys() (keys, error) {
	k, err := collections.LoadAuditKeys()
	if err != nil {
		return keys{}, fmt.Errorf("keys of the audit trail: %w", err)
	}
	return keys{hmac.New(sha256.New, k.Row), hmac.New(sha256.New, k.State)}, nil
}

// seal is HMAC-SHA-256 in lower-case hex over everything that is kept about the trail.
func (k keys) seal(s collections.AuditState) string {
	k.state.Reset()
	_, _ = fmt.Fprintf(k.state, "%d %s %d %s", s.Entries, s.Head, s.Unkeyed, s.UnkeyedHead) // a hash never fails
	return hex.EncodeToString(k.state.Sum(nil))
}

// sealed reports whether the state is as the service wrote it.
func (k keys) sealed(end collections.AuditEnd) bool {
	return end.Kept && hmac.Equal([]byte(k.seal(end.AuditState)), []byte(end.Seal))
}

// Begin makes the state that a database has not had yet: of a fresh one, and of one that an older version wrote, whose rows keep their
// hashes and are sealed as they are. It never makes one that was there before: a trail that lost its state says so at every check, for good.
// Whether the trail ends as its state says is for [CheckEnd].
func Begin(app core.App) error {
	return app.RunInTransaction(func(tx core.App) error {
		k, err := loadKeys()
		if err != nil {
			return err
		}
		end, err := collections.ReadAuditEnd(tx)
		if err != nil || end.Kept {
			return err
		}
		earlier, err := expected(tx)
		if err != nil || !earlier {
			return err
		}
		end = unkeyed(end)
		end.Seal = k.seal(end.AuditState)
		return errors.Join(collections.BeginAuditState(tx, end.AuditState), collections.MarkAuditKeys(tx))
	})
}

// ErrBroken says that the trail does not end where its sealed state says.
var ErrBroken = errors.New("the audit trail does not end as its sealed state says: see vigil audit verify")

// CheckEnd looks at the end only, which costs nothing, and fails with [ErrBroken].
func CheckEnd(app core.App) error {
	k, err := loadKeys()
	if err != nil {
		return err
	}
	end, err := collections.ReadAuditEnd(app)
	if err != nil {
		return err
	}
	if !k.sealed(end) || end.Entries != collections.Number(end.ID) || end.Entries > 0 && end.Head != end.Hash {
		return ErrBroken
	}
	return nil
}

// expected reports whether it is in order that there is no state: the keys say that an older version was here last, or nobody at all was.
func expected(app core.App) (bool, error) {
	if earlier, err := collections.BeforeAuditKeys(app); err != nil || earlier {
		return earlier, err
	}
	used, err := collections.EverUsed(app)
	return !used, err
}

// unkeyed is the state of a trail all of whose rows are of an older version.
func unkeyed(end collections.AuditEnd) collections.AuditEnd {
	last := collections.Number(end.ID)
	head := end.Hash
	if last == 0 {
		head = firstPrevious
	}
	end.AuditState = collections.AuditState{Entries: last, Head: head, Unkeyed: last, UnkeyedHead: head}
	return end
}
