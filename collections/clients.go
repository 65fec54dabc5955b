package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Client is a machine with credentials of its own. Its secret is stored as a hash.
type Client struct{ dated }

// ClientValues are what an administrator says of a client.
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
		"name": v.Name, "scopes": list(v.Scopes), "jwks_url": v.JWKSURL, "jwks": keys, "allowed_cidrs": list(v.AllowedCIDRs), "active": v.Active,
		ColumnUpdatedAt: Instant(now),
	}
}

func list(texts []string) []string { return append([]string{}, texts...) }

// CreateClient stores a client with its credentials.
func CreateClient(tx core.App, v ClientValues, secretHash, tokenKey string, now time.Time) (*Client, error) {
	values := v.columns(now)
	values["secret_hash"], values["token_key"], values[ColumnCreatedAt] = secretHash, tokenKey, Instant(now)
	client, err := fresh[Client](tx, Clients, values)
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

// PageOfClients returns a page of the clients in the order in which they were made, and how many there are in all.
func PageOfClients(app core.App, offset, limit int) ([]*Client, int, error) {
	return pageOf[Client](app, Clients, Every(nil), []string{ColumnCreatedAt, "id"}, offset, limit)
}

// ChangeClient stores what is said of a client.
func ChangeClient(tx core.App, c *Client, v ClientValues, now time.Time) error {
	c.ProxyRecord().Load(v.columns(now))
	return wrap(tx.Save(c), "change client")
}

// ReplaceClientSecret gives a client another secret.
func ReplaceClientSecret(tx core.App, c *Client, secretHash string, now time.Time) error {
	c.Set("secret_hash", secretHash)
	c.Set(ColumnUpdatedAt, Instant(now))
	return wrap(tx.Save(c), "replace the client's secret")
}

// EndClientTokens ends the access tokens of a client once it is saved.
func EndClientTokens(c *Client, tokenKey string) { c.Set("token_key", tokenKey) }

// RemoveClient removes a client.
func RemoveClient(tx core.App, c *Client) error { return wrap(tx.Delete(c), "remove client") }

// NoteClientUsed notes when a client was last heard of. It writes this column only.
func NoteClientUsed(tx core.App, id string, now time.Time) error {
	return update(tx, "note use of client", Clients, dbx.Params{"last_used_at": Instant(now)}, dbx.HashExp{"id": id})
}

// Values are what an administrator has said of the client.
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
