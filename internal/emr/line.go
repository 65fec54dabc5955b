package emr

import "net/http"

// Line reports whether the way to the EMR failed and not what was sent on it: no connection, no answer in time, an EMR in trouble or
// asking for patience, a sign-in that was refused. Whatever else was to be sent then would have ended the same way. A refusal by a
// 4xx, 403 included, is about the record, and so is what never left for want of a setting or of the patient's id.
// Source: docs/decisions/transmissions.md, "The line's faults and the record's".
func (e *Error) Line() bool {
	switch {
	case e.Code == CodeNotConfigured, e.Code == CodeSearchOutdated, e.Code == CodeUpdateRefused:
		return false
	case e.SignIn:
		return true
	case e.Status >= 400 && e.Status < 500:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests
	}
	switch e.Code {
	case CodeTimeout, CodeUnavailable, CodeRateLimited, CodeAuth:
		return true
	}
	return false
}
