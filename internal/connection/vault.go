package connection

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
)

// NewVault keeps the EMR client's tokens in the database, encrypted, one row for each flow. It holds the app for the client, which knows no
// storage. Source: docs/decisions/emr.md, "Token storage".
func NewVault(app core.App, clock func() time.Time) emr.Vault { return vault{app, clock} }

type vault struct {
	app   core.App
	clock func() time.Time
}

// Load implements [emr.Vault].
func (v vault) Load(flow emr.Flow) (emr.Tokens, error) {
	t, err := collections.FindEMRToken(v.app, string(flow))
	if collections.Missing(err) || collections.IsUnreadable(err) { // either way new ones are asked for
		return emr.Tokens{}, nil
	}
	if err != nil {
		return emr.Tokens{}, err
	}
	return emr.Tokens{
		Access: t.AccessToken, Refresh: t.RefreshToken, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	}, nil
}

// Keep implements [emr.Vault]. That a person's grant was renewed is on record; the service's own hourly sign-in is not.
func (v vault) Keep(flow emr.Flow, t emr.Tokens) error {
	return v.app.RunInTransaction(func(tx core.App) error {
		if err := keep(tx, flow, t); err != nil || flow != emr.InteractiveFlow {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRToken, Actor: audit.System(), ResourceType: resource, ResourceID: string(flow)}, v.clock())
	})
}

func keep(tx core.App, flow emr.Flow, t emr.Tokens) error {
	return collections.KeepEMRToken(tx, collections.EMRToken{
		Flow: string(flow), AccessToken: t.Access, RefreshToken: t.Refresh, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	})
}
