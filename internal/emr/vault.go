package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// NewVault returns a Vault that stores tokens in the database, encrypted, one row per flow.
// Source: docs/decisions/emr.md, "Token storage".
func NewVault(app core.App, clock func() time.Time) Vault { return vault{app, clock} }

type vault struct {
	app   core.App
	clock func() time.Time
}

// Load implements [Vault].
func (v vault) Load(flow Flow) (Tokens, error) {
	t, err := collections.FindEMRToken(v.app, string(flow))
	if collections.IsNotFound(err) || collections.IsUnreadable(err) { // in both cases a new token is requested
		return Tokens{}, nil
	}
	if err != nil {
		return Tokens{}, err
	}
	return Tokens{
		Access: t.AccessToken, Refresh: t.RefreshToken, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	}, nil
}

// Store implements [Vault]. The audit trail records renewals of a person's grant, but not the service's own hourly sign-ins.
func (v vault) Store(flow Flow, t Tokens) error {
	return v.app.RunInTransaction(func(tx core.App) error {
		if err := storeTokens(tx, flow, t); err != nil || flow != InteractiveFlow {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRToken, Actor: audit.System(), ResourceType: connectionResource, ResourceID: string(flow)}, v.clock())
	})
}

func storeTokens(tx core.App, flow Flow, t Tokens) error {
	return collections.StoreEMRToken(tx, collections.EMRToken{
		Flow: string(flow), AccessToken: t.Access, RefreshToken: t.Refresh, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	})
}
