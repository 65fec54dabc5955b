package auth

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Credentials hold a client and its secret, which is shown once. They refuse to print.
type Credentials struct {
	Client *collections.Client
	Secret string
}

// Format hides the secret.
func (Credentials) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[credentials]") }

// LogValue hides the secret.
func (Credentials) LogValue() slog.Value { return slog.StringValue("[credentials]") }

// Create creates a client.
func (e *MachineClients) Create(app core.App, draft ClientDraft, by audit.Actor, now time.Time) (created Credentials, err error) {
	values := draft(collections.ClientValues{Active: true})
	created.Secret = secretPrefix + Random()
	err = app.RunInTransaction(func(tx core.App) error {
		if created.Client, err = collections.CreateClient(tx, values, Hash(created.Secret), Random(), now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientCreate, created.Client.Id, clientChanges(collections.ClientValues{}, values), by, now)
	})
	return created, err
}

// Change changes a client, effective with the next request. Tokens end if the client's keys change or it is deactivated.
func (e *MachineClients) Change(app core.App, id string, draft ClientDraft, by audit.Actor, now time.Time) (client *collections.Client, err error) {
	err = e.changeClient(app, id, func(tx core.App, found *collections.Client) error {
		client = found
		before := client.Values()
		after := draft(before)
		changed := clientChanges(before, after)
		if len(changed) == 0 {
			return nil
		}
		_, elsewhere := changed["jwks_url"]
		_, otherKeys := changed["jwks"]
		if elsewhere || otherKeys || before.Active && !after.Active {
			collections.EndClientTokens(client, Random())
		}
		if err := collections.ChangeClient(tx, client, after, now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientUpdate, id, changed, by, now)
	})
	return client, err
}

// RotateSecret replaces the client's secret. The old secret and every token end immediately.
func (e *MachineClients) RotateSecret(app core.App, id string, by audit.Actor, now time.Time) (created Credentials, err error) {
	created.Secret = secretPrefix + Random()
	err = e.changeClient(app, id, func(tx core.App, client *collections.Client) error {
		created.Client = client
		collections.EndClientTokens(client, Random())
		if err := collections.ReplaceClientSecret(tx, client, Hash(created.Secret), now); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientSecretRotate, id, nil, by, now)
	})
	return created, err
}

// Delete deletes a client. Its actions stay in the audit trail under its name.
func (e *MachineClients) Delete(app core.App, id string, by audit.Actor, now time.Time) error {
	return e.changeClient(app, id, func(tx core.App, client *collections.Client) error {
		if err := collections.RemoveClient(tx, client); err != nil {
			return err
		}
		return appendClientEntry(tx, audit.ClientDelete, id, audit.Changes{"name": {Old: client.Values().Name}}, by, now)
	})
}

// changeClient applies a change to a client in a transaction and evicts the client from the cache.
func (e *MachineClients) changeClient(app core.App, id string, change func(tx core.App, client *collections.Client) error) error {
	err := app.RunInTransaction(func(tx core.App) error {
		client, err := collections.FindClient(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		return change(tx, client)
	})
	e.Evict(id)
	return err
}

func appendClientEntry(tx core.App, event audit.Event, id string, changed audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourceClient, ResourceID: id, Changes: changed}, now)
}

// clientChanges returns the changed values for the audit trail, and the key ids in place of keys.
func clientChanges(before, after collections.ClientValues) audit.Changes {
	changed := audit.Changes{}
	changed.Record("name", before.Name, after.Name)
	changed.Record("scopes", strings.Join(before.Scopes, " "), strings.Join(after.Scopes, " "))
	changed.Record("jwks_url", before.JWKSURL, after.JWKSURL)
	changed.Record("allowed_cidrs", strings.Join(before.AllowedCIDRs, " "), strings.Join(after.AllowedCIDRs, " "))
	changed.Record("active", before.Active, after.Active)
	if !bytes.Equal(before.JWKS, after.JWKS) {
		changed["jwks"] = audit.Change{Old: storedKeyIDs(before.JWKS), New: storedKeyIDs(after.JWKS)}
	}
	return changed
}

func storedKeyIDs(stored []byte) string {
	if stored == nil {
		return ""
	}
	keys, err := parseConfiguredKeys(stored)
	if err != nil {
		return ""
	}
	return strings.Join(keys.keyIDs(), " ")
}

func joinScopes(scopes authz.ClientScopes) string { return strings.Join(scopes.Strings(), " ") }
