package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// AddEMRAuthState stores the hash of a state with its verifier, and forgets those that ended before the given time.
func AddEMRAuthState(tx core.App, stateHash, userID string, verifier phi.Text, now, expires, forget time.Time) error {
	_, err := tx.DB().Delete(EMRAuthStates, dbx.NewExp("expires_at < {:forget}", dbx.Params{"forget": Instant(forget)})).Execute()
	if err != nil {
		return fmt.Errorf("forget EMR auth states: %w", err)
	}
	r, err := New(tx, EMRAuthStates)
	if err != nil {
		return err
	}
	for column, value := range map[string]string{
		"state_hash": stateHash, "user": userID, "verifier": verifier.Reveal(), "created_at": Instant(now), "expires_at": Instant(expires),
	} {
		r.Set(column, value)
	}
	return wrap(tx.Save(r), "store EMR auth state")
}

// UseEMRAuthState uses a state up and returns who started it, and the verifier; a missing row means that it is unknown, used or expired.
func UseEMRAuthState(tx core.App, stateHash string, now time.Time) (userID string, verifier phi.Text, err error) {
	var id, sealed string
	err = tx.NonconcurrentDB().NewQuery(`UPDATE emr_auth_states SET used_at = {:now}
		WHERE state_hash = {:hash} AND used_at = '' AND expires_at > {:now} RETURNING id, user, verifier`).
		Bind(dbx.Params{"hash": stateHash, "now": Instant(now)}).Row(&id, &userID, &sealed)
	if err != nil {
		return "", "", fmt.Errorf("use EMR auth state: %w", err)
	}
	plain, err := OpenValue(sealed, EMRAuthStates, "verifier", id)
	return userID, phi.Text(plain), wrap(err, "open EMR auth state")
}
