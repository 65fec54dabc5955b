package routes_test

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// The feed names the client that enrolled a patient; null would mean that the service did.
func TestChangeFeedNamesClient(t *testing.T) {
	c := newClinic(t)
	token := c.token(c.addClient(object{"scopes": []string{"patients.write"}}), "")
	c.requestAsClient(token, "POST", "/patients/", patientBody(object{"first_name": "Grace", "last_name": "Hopper"})).want(201)
	c.enroll(nil)
	feed := c.request(authz.Admin, "GET", "/dashboard/activity/", nil).want(200).object()["results"].([]any)
	if len(feed) != 2 {
		t.Fatalf("the feed has %v", feed)
	}
	if user, client := feed[0].(object)["user"], feed[1].(object)["user"]; client != "Device cloud" || user != c.people[authz.Admin].Email() {
		t.Errorf("enrolled by %v and %v", user, client)
	}
}
