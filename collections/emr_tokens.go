package collections

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// EMRToken is the result of the last sign-in of one flow at the EMR.
type EMRToken struct {
	Flow                                    string // backend_services or interactive
	AccessToken, RefreshToken               phi.Text
	Scope, ConnectedBy, Audience            string
	ObtainedAt, ExpiresAt, RefreshExpiresAt time.Time
}

// FindEMRToken finds the tokens of a flow. It returns [UnreadableError] if they cannot be opened.
func FindEMRToken(app core.App, flow string) (EMRToken, error) {
	r, err := app.FindFirstRecordByData(EMRTokens, "flow", flow)
	if err != nil {
		return EMRToken{}, fmt.Errorf("find EMR token: %w", err)
	}
	if err := Readable(r); err != nil {
		return EMRToken{}, err
	}
	return EMRToken{
		Flow: flow, AccessToken: phi.Text(r.GetString("access_token")), RefreshToken: phi.Text(r.GetString("refresh_token")),
		Scope: r.GetString("scope"), ConnectedBy: r.GetString("connected_by"), Audience: r.GetString("audience"),
		ObtainedAt: instantOf(r, "obtained_at"), ExpiresAt: instantOf(r, "expires_at"),
		RefreshExpiresAt: instantOf(r, "refresh_expires_at"),
	}, nil
}

// StoreEMRToken replaces the tokens of a flow. Unlike all other values, unreadable tokens are deleted, because they are useless.
func StoreEMRToken(tx core.App, t EMRToken) error {
	r, err := tx.FindFirstRecordByData(EMRTokens, "flow", t.Flow)
	if err == nil && Readable(r) != nil {
		if _, err := tx.DB().Delete(EMRTokens, dbx.HashExp{"id": r.Id}).Execute(); err != nil {
			return fmt.Errorf("remove EMR token: %w", err)
		}
		err = sql.ErrNoRows
	}
	if IsNotFound(err) {
		r, err = NewRecord(tx, EMRTokens)
	}
	if err != nil {
		return fmt.Errorf("find EMR token: %w", err)
	}
	for column, value := range map[string]string{
		"flow": t.Flow, "access_token": t.AccessToken.Reveal(), "refresh_token": t.RefreshToken.Reveal(), "scope": t.Scope,
		"connected_by": t.ConnectedBy, "audience": t.Audience, "obtained_at": FormatInstant(t.ObtainedAt),
		"expires_at": FormatInstant(t.ExpiresAt), "refresh_expires_at": FormatInstant(t.RefreshExpiresAt),
	} {
		r.Set(column, value)
	}
	return wrap(tx.Save(r), "store EMR token")
}

// AddEMRAuthState stores the hash of a state with its verifier, and deletes states that expired before the given time.
func AddEMRAuthState(tx core.App, stateHash, userID string, verifier phi.Text, now, expires, deleteBefore time.Time) error {
	err := remove(tx, "delete EMR auth states", EMRAuthStates, dbx.NewExp("expires_at < {:before}", dbx.Params{"before": FormatInstant(deleteBefore)}))
	if err != nil {
		return err
	}
	_, err = store(tx, "store EMR auth state", EMRAuthStates, map[string]any{
		"state_hash": stateHash, "user": userID, "verifier": verifier.Reveal(), "created_at": FormatInstant(now), "expires_at": FormatInstant(expires),
	})
	return err
}

// UseEMRAuthState consumes a state and returns its user and verifier. A not-found error means that it is unknown, used or expired.
func UseEMRAuthState(tx core.App, stateHash string, now time.Time) (userID string, verifier phi.Text, err error) {
	var id, sealed string
	err = tx.NonconcurrentDB().NewQuery(`UPDATE emr_auth_states SET used_at = {:now}
		WHERE state_hash = {:hash} AND used_at = '' AND expires_at > {:now} RETURNING id, user, verifier`).
		Bind(dbx.Params{"hash": stateHash, "now": FormatInstant(now)}).Row(&id, &userID, &sealed)
	if err != nil {
		return "", "", fmt.Errorf("use EMR auth state: %w", err)
	}
	plain, err := OpenValue(sealed, EMRAuthStates, "verifier", id)
	return userID, phi.Text(plain), wrap(err, "open EMR auth state")
}
