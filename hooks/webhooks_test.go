package hooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A superuser cannot create or change a webhook or see its URL and secrets, but can delete it.
func TestDashboardCannotChangeWebhooks(t *testing.T) {
	d := newDashboard(t)
	const address, secret = "https://emr.example.org/hook?key=abc", "whsec_c2lnbnMgbm90aGluZyBhbnl3aGVyZQ=="
	w, err := collections.CreateWebhook(d.app, collections.WebhookValues{URL: address, Events: []string{"alert.raised"}, Active: true}, secret, 1, vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := collections.ReplaceWebhookSecret(d.app, w, secret+"new", vigiltest.Clock.AddDate(0, 0, 1), vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	d.refused("POST", collections.Webhooks, "", "", object{"url": address, "secret": secret, "events": []string{"patient.created"}, "active": true})
	for column, value := range map[string]any{
		"url": "https://elsewhere.example.org/", "secret": secret, "previous_secret": secret, "events": []string{"patient.created"}, "include_values": true, "active": false, "position": 0,
	} {
		d.refused("PATCH", collections.Webhooks, w.Id, "", object{column: value})
	}
	for _, id := range []string{w.Id, ""} {
		if _, shown := d.send("GET", collections.Webhooks, id, nil); strings.Contains(fmt.Sprint(shown), "whsec_") || strings.Contains(fmt.Sprint(shown), "emr.example.org") ||
			!strings.Contains(fmt.Sprint(shown), "alert.raised") {
			t.Errorf("shown as %v", shown)
		}
	}
	if err := collections.QueueWebhookDelivery(d.app, collections.WebhookDelivery{Webhook: w.Id, Seq: 7, Event: "alert.raised", Record: "12", Queue: "p"}, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	page, _, err := collections.PageOfWebhookDeliveries(d.app, w.Id, "", 0, 1)
	if err != nil || len(page) != 1 {
		t.Fatal(err)
	}
	d.refused("PATCH", collections.WebhookDeliveries, page[0].ID, "", object{"status": "delivered"})
	if stored, err := collections.FindWebhook(d.app, w.Id); err != nil || stored.Secret() != secret+"new" || stored.Values().URL != address || stored.Values().IncludeValues {
		t.Errorf("stored %v, %v", stored, err)
	}
	d.do("DELETE", collections.Webhooks, w.Id, nil)
	trail, _, err := audit.List(d.app, audit.Filter{Event: string(audit.WebhookDelete), ResourceID: w.Id}, 0, 10)
	if printed := fmt.Sprint(trail); err != nil || len(trail) != 1 || strings.Contains(printed, "whsec_") {
		t.Errorf("the audit entry of its deletion: %s, %v", printed, err)
	}
}
