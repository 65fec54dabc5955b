package hooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A superuser cannot create or change a client or see its secrets, but can delete it.
func TestDashboardCannotChangeClients(t *testing.T) {
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
	for _, id := range []string{client.Id, ""} {
		if _, shown := d.send("GET", collections.Clients, id, nil); strings.Contains(fmt.Sprint(shown), "a-token-key") || strings.Contains(fmt.Sprint(shown), strings.Repeat("a", 64)) ||
			!strings.Contains(fmt.Sprint(shown), "Cloud") {
			t.Errorf("shown as %v", shown)
		}
	}
	stored, err := collections.FindClient(d.app, client.Id)
	if err != nil || stored.SecretHash() != client.SecretHash() || stored.TokenKey() != "a-token-key" || stored.Values().Name != "Cloud" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	d.do("DELETE", collections.Clients, client.Id, nil)
	trail, _, err := audit.List(d.app, audit.Filter{Event: string(audit.ClientDelete), ResourceID: client.Id}, 0, 10)
	if printed := fmt.Sprint(trail); err != nil || len(trail) != 1 || trail[0].Changes["name"].Old != "Cloud" || strings.Contains(printed, "a-token-key") || strings.Contains(printed, strings.Repeat("a", 64)) {
		t.Errorf("the audit entry of its deletion: %s, %v", printed, err)
	}
}
