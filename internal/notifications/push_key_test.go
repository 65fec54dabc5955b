package notifications_test

import (
	"net/http"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Of the answers with 400 only those about the key mark the token as refused; administrators are notified of each.
func TestRefusalOfKey(t *testing.T) {
	for reason, want := range map[string]bool{
		`{"reason":"VapidPkHashMismatch"}`: true, "<TITLE>UnauthorizedRegistration</TITLE>": true, `{"reason":"BadWebPushTopic"}`: false, "": false,
	} {
		w := newPractice(t)
		admin, nurse := vigiltest.User(t, w.app, authz.Admin), w.member(authz.Nurse)
		w.device(nurse, "/phone")
		w.service.answer = func(rw http.ResponseWriter, _ *http.Request, _ int) {
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = rw.Write([]byte(reason))
		}
		w.critical("1")
		w.send()
		w.send()
		tokens, err := collections.ActivePushTokens(w.app, []string{nurse.Id})
		if err != nil || len(tokens) != 1 || tokens[0].Refused() != want || len(w.list(admin)) != 1 {
			t.Errorf("%q: %d tokens, %v, told %v", reason, len(tokens), err, w.list(admin))
		}
	}
}
