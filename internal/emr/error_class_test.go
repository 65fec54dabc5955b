package emr

import (
	"net/http"
	"testing"
)

// Source: docs/decisions/transmissions.md, "Failure attribution".
func TestFault(t *testing.T) {
	for name, test := range map[string]struct {
		e    Error
		want Fault
	}{
		"no connection":           {Error{Code: CodeUnavailable}, OfLine},
		"no answer in time":       {Error{Code: CodeTimeout}, OfLine},
		"500":                     {Error{Code: CodeUnavailable, Status: 500}, OfLine},
		"503":                     {Error{Code: CodeUnavailable, Status: 503}, OfLine},
		"408":                     {Error{Code: CodeUnavailable, Status: http.StatusRequestTimeout}, OfLine},
		"a redirect":              {Error{Code: CodeUnavailable, Status: 302}, OfLine},
		"a stranger's page":       {Error{Code: CodeUnavailable, Status: 200}, OfLine},
		"401":                     {Error{Code: CodeAuth, Status: 401}, OfSignIn},
		"token refused":           {Error{Code: CodeAuth, Status: 400, SignIn: true}, OfSignIn},
		"token refused with 403":  {Error{Code: CodeAuth, Status: 403, SignIn: true}, OfSignIn},
		"no connection for token": {Error{Code: CodeUnavailable, SignIn: true}, OfSignIn},
		"429":                     {Error{Code: CodeRateLimited, Status: 429}, OfPace},
		"429 for a token":         {Error{Code: CodeRateLimited, Status: 429, SignIn: true}, OfPace},
		"403":                     {Error{Code: CodeAuth, Status: 403}, OfRequest},
		"404":                     {Error{Code: CodePatientNotFound, Status: 404}, OfRequest},
		"422":                     {Error{Code: CodeInvalidResource, Status: 422}, OfRequest},
		"no EMR id":               {Error{Code: CodePatientNotFound}, OfRequest},
		"no FHIR form":            {Error{Code: CodeInvalidResource}, OfRequest},
		"not configured":          {Error{Code: CodeNotConfigured}, OfSignIn},
	} {
		if got := test.e.Fault(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
