package emr

import (
	"net/http"
	"testing"
)

// Source: docs/decisions/transmissions.md, "Failure attribution".
func TestErrorClass(t *testing.T) {
	for name, test := range map[string]struct {
		e    Error
		want ErrorClass
	}{
		"no connection":           {Error{Code: CodeUnavailable}, ClassOutage},
		"no answer in time":       {Error{Code: CodeTimeout}, ClassOutage},
		"500":                     {Error{Code: CodeUnavailable, Status: 500}, ClassOutage},
		"503":                     {Error{Code: CodeUnavailable, Status: 503}, ClassOutage},
		"408":                     {Error{Code: CodeUnavailable, Status: http.StatusRequestTimeout}, ClassOutage},
		"a redirect":              {Error{Code: CodeUnavailable, Status: 302}, ClassOutage},
		"a foreign page":          {Error{Code: CodeUnavailable, Status: 200}, ClassOutage},
		"401":                     {Error{Code: CodeAuth, Status: 401}, ClassSignIn},
		"token refused":           {Error{Code: CodeAuth, Status: 400, SignIn: true}, ClassSignIn},
		"token refused with 403":  {Error{Code: CodeAuth, Status: 403, SignIn: true}, ClassSignIn},
		"no connection for token": {Error{Code: CodeUnavailable, SignIn: true}, ClassSignIn},
		"429":                     {Error{Code: CodeRateLimited, Status: 429}, ClassRateLimited},
		"429 for a token":         {Error{Code: CodeRateLimited, Status: 429, SignIn: true}, ClassRateLimited},
		"403":                     {Error{Code: CodeAuth, Status: 403}, ClassRequest},
		"404":                     {Error{Code: CodePatientNotFound, Status: 404}, ClassRequest},
		"422":                     {Error{Code: CodeInvalidResource, Status: 422}, ClassRequest},
		"no EMR id":               {Error{Code: CodePatientNotFound}, ClassRequest},
		"no FHIR form":            {Error{Code: CodeInvalidResource}, ClassRequest},
		"not configured":          {Error{Code: CodeNotConfigured}, ClassSignIn},
	} {
		if got := test.e.Class(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
