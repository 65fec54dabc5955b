package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/routes"
)

// Only administrators read the settings. A secret has no value. Source: docs/decisions/operating.md, "Settings in the
// console".
func TestSettings(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) {
		e.Settings = []config.Setting{
			{Name: "VIGIL_SMTP_HOST", Value: "mail.example.org", Source: "environment", Meaning: "mail server"},
			{Name: "VIGIL_SMTP_PASSWORD", Source: "file", Secret: true, Meaning: "its password"},
		}
	})
	list := c.request(authz.Admin, "GET", "/settings/", nil).want(200).object()["results"].([]any)
	if len(list) != 2 {
		t.Fatal(list)
	}
	if one := list[0].(object); one["name"] != "VIGIL_SMTP_HOST" || one["value"] != "mail.example.org" || one["source"] != "environment" {
		t.Error(one)
	}
	if one := list[1].(object); one["value"] != nil || one["secret"] != true || one["source"] != "file" {
		t.Error(one)
	}
	c.request(authz.Admin, "GET", "/settings/?order=name", nil).want(400)
	for _, role := range []authz.Role{authz.ClinicalManager, authz.Nurse, authz.DataMonitor, authz.Patient} {
		c.request(role, "GET", "/settings/", nil).want(403)
	}
}
