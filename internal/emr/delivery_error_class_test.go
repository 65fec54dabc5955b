package emr_test

import (
	"errors"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

// Each outcome of a delivery is attributed to the EMR or to the record.
func TestErrorClassOfDeliveries(t *testing.T) {
	signIn := func(tokens ...reply) *fakeEMR { return &fakeEMR{tokens: tokens} }
	for name, test := range map[string]struct {
		fake       *fakeEMR
		isEMRFault bool
	}{
		"no connection":          {replyToPosts(reply{err: errors.New("refused")}), true},
		"no answer in time":      {replyToPosts(reply{hang: true}), true},
		"500":                    {replyToPosts(reply{status: 500}), true},
		"503":                    {replyToPosts(reply{status: 503}), true},
		"a proxy's page":         {replyToPosts(reply{status: 200, body: "<html>"}), true},
		"a redirect":             {replyToPosts(reply{status: 302}), true},
		"token refused twice":    {replyToPosts(reply{status: 401}), true},
		"408":                    {replyToPosts(reply{status: 408}), true},
		"429":                    {replyToPosts(reply{status: 429}), true},
		"scope missing":          {replyToPosts(reply{status: 403}), false},
		"400":                    {replyToPosts(reply{status: 400}), false},
		"404":                    {replyToPosts(reply{status: 404}), false},
		"405":                    {replyToPosts(reply{status: 405}), false},
		"412":                    {replyToPosts(reply{status: 412}), false},
		"422":                    {replyToPosts(reply{status: 422}), false},
		"unknown client":         {signIn(reply{status: 400, body: `{"error":"invalid_client"}`}), true},
		"sign-in forbidden":      {signIn(reply{status: 403}), true},
		"no such token endpoint": {signIn(reply{status: 404}), true},
		"sign-in fails":          {signIn(reply{status: 500}), true},
		"sign-in throttled":      {signIn(reply{status: 429}), true},
		"sign-in without answer": {signIn(reply{err: errors.New("refused")}), true},
		"no token in the answer": {signIn(reply{status: 200, body: "<html>"}), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := deliver(t, newClient(t, test.fake, func(o *emr.Options) { o.Timeout = 50 * time.Millisecond }))
			if e == nil || (e.Class() != emr.ClassRequest) != test.isEMRFault {
				t.Errorf("%+v", e)
			}
		})
	}
	for _, e := range []emr.Error{{Code: emr.CodePatientNotFound}, {Code: emr.CodeInvalidResource}} {
		if e.Class() != emr.ClassRequest {
			t.Errorf("%s is attributed to the EMR", e.Code)
		}
	}
}
