package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Note templates are created and changed by managers, readable by all staff, and suggested by subject; each change is
// audited.
func TestNoteTemplates(t *testing.T) {
	c := newClinic(t)
	const path = "/note-templates/"
	made := func(name, context string) string {
		body := object{"name": name, "text": name + ", in full."}
		if context != "" {
			body["context"] = context
		}
		return fmt.Sprintf("%s%v/", path, c.request(authz.ClinicalManager, "POST", path, body).want(201).at("id"))
	}
	varnish := made("Nail varnish", "alert")
	made("Reached nobody", "")
	made("Handed over", "escalation")
	names := func(query string) (list []string) {
		for _, one := range c.request(authz.DataMonitor, "GET", path+query, nil).results() {
			list = append(list, one["name"].(string))
		}
		return list
	}
	for query, want := range map[string]string{
		"": "[Handed over Nail varnish Reached nobody]", "?context=alert": "[Nail varnish Reached nobody]", "?context=note": "[Reached nobody]",
	} {
		if got := fmt.Sprint(names(query)); got != want {
			t.Errorf("%q lists %s, want %s", query, got, want)
		}
	}
	c.request(authz.Nurse, "GET", path+"?context=patient", nil).wantFields("context")

	c.request(authz.Admin, "PUT", varnish, object{"name": "Nail varnish", "text": "Varnish on the nail.", "context": "any"}).want(200).wantAt(object{
		"text": "Varnish on the nail.", "context": "any",
	})
	c.request(authz.Nurse, "GET", varnish, nil).want(200).wantAt(object{"name": "Nail varnish", "context": "any"})
	c.request(authz.Admin, "PUT", varnish, object{"name": "Nail varnish", "text": "Varnish on the nail.", "context": "any"}).want(200)
	c.request(authz.Admin, "DELETE", varnish, nil).want(204)
	c.request(authz.Admin, "DELETE", varnish, nil).want(404)
	c.request(authz.Nurse, "GET", varnish, nil).want(404)
	c.request(authz.Admin, "PUT", varnish, object{"name": "Nail varnish", "text": "Again."}).want(404)

	const lines = "Asked about:\n- salt\n- sleep"
	c.request(authz.Admin, "POST", path, object{"name": "Call", "text": lines}).want(201).wantAt(object{"text": lines})

	var traces []string
	err := c.app.DB().Select("event").From("audit_log").Where(dbx.HashExp{"resource_type": "NoteTemplate", "resource_id": strings.Trim(strings.TrimPrefix(varnish, path), "/")}).Column(&traces)
	if err != nil || fmt.Sprint(traces) != "[settings.update settings.update settings.update]" { // created, changed once, removed
		t.Errorf("the audit log has %v: %v", traces, err)
	}
}

func TestNoteTemplateRefusals(t *testing.T) {
	c := newClinic(t)
	const path = "/note-templates/"
	for _, tc := range []struct {
		body  object
		field string
	}{
		{object{"text": "Without a name."}, "name"},
		{object{"name": "Without a text"}, "text"},
		{object{"name": " ", "text": "Blank."}, "name"},
		{object{"name": strings.Repeat("n", 101), "text": "Long."}, "name"},
		{object{"name": "Long", "text": strings.Repeat("t", 2001)}, "text"},
		{object{"name": "Elsewhere", "text": "Text.", "context": "patient"}, "context"},
		{object{"name": "Null", "text": "Text.", "context": nil}, "context"},
	} {
		c.request(authz.Admin, "POST", path, tc.body).wantFields(tc.field)
	}
	c.request(authz.Patient, "GET", path, nil).want(403)
	c.request(authz.Nurse, "POST", path, object{"name": "Mine", "text": "Text."}).want(403)
	c.request(authz.Provider, "DELETE", path+"1/", nil).want(403)
}
