package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Client is a machine client. Its secret is stored as a hash.
type Client struct{ datedRecord }

// ClientValues are the values that an administrator sets.
type ClientValues struct {
	Name         string
	Scopes       []string
	JWKSURL      string
	JWKS         json.RawMessage // nil for none
	AllowedCIDRs []string
	Active       bool
}

func (v ClientValues) columns(now time.Time) map[string]any {
	var keys any
	if v.JWKS != nil {
		keys = string(v.JWKS)
	}
	return map[string]any{
		"name": v.Name, "scopes": nonNilCopy(v.Scopes), "jwks_url": v.JWKSURL, "jwks": keys, "allowed_cidrs": nonNilCopy(v.AllowedCIDRs), "active": v.Active,
		ColumnUpdatedAt: FormatInstant(now),
	}
}

func nonNilCopy(texts []string) []string { return append([]string{}, texts...) }

// CreateClient stores a client with its credentials.
func CreateClient(tx core.App, v ClientValues, secretHash, tokenKey string, now time.Time) (*Client, error) {
	values := v.columns(now)
	values["secret_hash"], values["token_key"], values[ColumnCreatedAt] = secretHash, tokenKey, FormatInstant(now)
	client, err := newRecord[Client](tx, Clients, values)
	if err != nil {
		return nil, err
	}
	client.Id = NewUUID()
	return client, wrap(tx.Save(client), "store client")
}

// FindClient finds a client by id.
func FindClient(app core.App, id string) (*Client, error) {
	return find[Client](app, Clients, dbx.HashExp{"id": id})
}

// PageOfClients returns a page of clients in order of creation, and the total.
func PageOfClients(app core.App, offset, limit int) ([]*Client, int, error) {
	return pageOf[Client](app, Clients, AllOf(nil), []string{ColumnCreatedAt, "id"}, offset, limit)
}

// ChangeClient stores new values of a client.
func ChangeClient(tx core.App, c *Client, v ClientValues, now time.Time) error {
	c.ProxyRecord().Load(v.columns(now))
	return wrap(tx.Save(c), "change client")
}

// ReplaceClientSecret replaces the secret of a client.
func ReplaceClientSecret(tx core.App, c *Client, secretHash string, now time.Time) error {
	c.Set("secret_hash", secretHash)
	c.Set(ColumnUpdatedAt, FormatInstant(now))
	return wrap(tx.Save(c), "replace the client's secret")
}

// EndClientTokens sets a new token key, which invalidates the client's access tokens once it is saved.
func EndClientTokens(c *Client, tokenKey string) { c.Set("token_key", tokenKey) }

// RemoveClient deletes a client.
func RemoveClient(tx core.App, c *Client) error { return wrap(tx.Delete(c), "remove client") }

// MarkClientUsed records the last use of a client. It writes only this column.
func MarkClientUsed(tx core.App, id string, now time.Time) error {
	return update(tx, "note use of client", Clients, dbx.Params{"last_used_at": FormatInstant(now)}, dbx.HashExp{"id": id})
}

// Values returns the values that an administrator set.
func (c *Client) Values() ClientValues {
	v := ClientValues{
		Name: c.GetString("name"), Scopes: c.GetStringSlice("scopes"), JWKSURL: c.GetString("jwks_url"),
		AllowedCIDRs: c.GetStringSlice("allowed_cidrs"), Active: c.GetBool("active"),
	}
	if keys := c.GetString("jwks"); keys != "" && keys != "null" {
		v.JWKS = json.RawMessage(keys)
	}
	return v
}

func (c *Client) SecretHash() string    { return c.GetString("secret_hash") }
func (c *Client) TokenKey() string      { return c.GetString("token_key") }
func (c *Client) LastUsedAt() time.Time { return instantOf(c, "last_used_at") }
