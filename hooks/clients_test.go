package hooks_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A superuser neither makes a client nor gives one more than it has, and does not see what its tokens are made of. Taking one away is allowed.
func TestClientsInTheDashboard(t *testing.T) {
	d := newDashboard(t)
	client, err := collections.CreateClient(d.app, collections.ClientValues{Name: "Cloud", Scopes: []string{"ingest"}, Active: true}, strings.Repeat("a", 64), "a-token-key", vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	d.refused("POST", collections.Clients, "", "", object{"name": "Mine", "scopes": []string{"ingest"}, "active": true, "secret_hash": strings.Repeat("b", 64), "token_key": "b"})
	for column, value := range map[string]any{
		"scopes": []string{"patients.read"}, "allowed_cidrs": []string{}, "secret_hash": strings.Repeat("b", 64), "token_key": "b", "active": true, "jwks_url": "https://keys.example.org/",
		"name": "Mine",
	} {
		d.refused("PATCH", collections.Clients, client.Id, "", object{column: value})
	}
	stored, err := collections.FindClient(d.app, client.Id)
	if err != nil || stored.SecretHash() != client.SecretHash() || stored.TokenKey() != "a-token-key" || stored.Values().Name != "Cloud" {
		t.Errorf("stored %+v, %v", stored, err)
	}
}
