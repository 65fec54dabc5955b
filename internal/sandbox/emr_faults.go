package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"
)

// When a fault closes the connection.
const (
	DropBefore = "before" // before anything is done: the request never arrived
	DropAfter  = "after"  // after it was done, before the answer: the outcome is unknown to the caller
	DropHang   = "hang"   // after it was done, without an answer while the caller waits
)

// How an answer is corrupted.
const (
	AnswerHTML     = "html"      // a proxy's page with status 200
	AnswerHalf     = "half"      // the right answer, truncated
	AnswerRedirect = "redirect"  // to an address of the EMR that counts requests
	AnswerNoExpiry = "no_expiry" // a token answer without expires_in
)

// TokenExpired deletes the access token of the request.
const TokenExpired = "expired"

// Fault is a fault rule. Its effects run in the order of its fields: wait, delete the token, drop the connection, answer with Status or
// corrupt the answer.
type Fault struct {
	// Match is a substring of "METHOD /path"; empty matches every request except those under /sandbox/.
	Match string `json:"match"`
	// Times is how many requests it applies to; 0 means until cleared.
	Times int `json:"times"`
	// DelayMS is how long the request waits, in milliseconds.
	DelayMS int `json:"delay_ms"`
	// Token is TokenExpired or empty.
	Token string `json:"token"`
	// Percent is the random share of matching requests that it applies to; 0 means all.
	Percent int `json:"percent"`
	// Drop is DropBefore, DropAfter, DropHang or empty.
	Drop string `json:"drop"`
	// Status, if set, is answered without doing anything.
	Status int `json:"status"`
	// RetryAfter is sent with Status, in seconds, if positive.
	RetryAfter int `json:"retry_after"`
	// Answer is AnswerHTML, AnswerHalf, AnswerRedirect, AnswerNoExpiry or empty.
	Answer string `json:"answer"`
}

// Fail adds a fault rule. The first rule that matches a request applies.
func (e *EMR) Fail(fault Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, fault)
}

// ClearFaults removes every fault rule.
func (e *EMR) ClearFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = nil
}

// nextFault returns the rule for a request and decrements its times.
func (e *EMR) nextFault(r *http.Request) (Fault, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, fault := range e.faults {
		if !strings.Contains(r.Method+" "+r.URL.Path, fault.Match) || fault.Percent > 0 && rand.IntN(100) >= fault.Percent {
			continue
		}
		switch fault.Times {
		case 0:
		case 1:
			e.faults = slices.Delete(e.faults, i, i+1)
		default:
			e.faults[i].Times--
		}
		e.stats.Faulted++
		return fault, true
	}
	return Fault{}, false
}

func (e *EMR) serveFaulty(w http.ResponseWriter, r *http.Request, fault Fault) {
	if fault.DelayMS > 0 {
		if !bufferBody(w, r) {
			return
		}
		select {
		case <-time.After(time.Duration(fault.DelayMS) * time.Millisecond):
		case <-r.Context().Done():
			return // the caller closed the connection while waiting
		}
	}
	if fault.Token == TokenExpired {
		e.mu.Lock()
		delete(e.accessTokens, bearerToken(r))
		e.mu.Unlock()
	}
	switch {
	case fault.Drop == DropBefore:
		panic(http.ErrAbortHandler)
	case fault.Drop == DropAfter:
		e.mux.ServeHTTP(discardWriter{}, r)
		panic(http.ErrAbortHandler)
	case fault.Drop == DropHang:
		if bufferBody(w, r) {
			e.mux.ServeHTTP(discardWriter{}, r)
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		writeFault(w, r, fault)
	case fault.Answer != "":
		e.corruptAnswer(w, r, fault.Answer)
	default:
		e.mux.ServeHTTP(w, r)
	}
}

// bufferBody reads the whole body, because only then does the server notice a closed connection.
func bufferBody(w http.ResponseWriter, r *http.Request) bool {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return err == nil
}

// corruptAnswer answers with a corrupted result.
func (e *EMR) corruptAnswer(w http.ResponseWriter, r *http.Request, how string) {
	switch how {
	case AnswerHTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Down for maintenance</title>")
		return
	case AnswerRedirect:
		http.Redirect(w, r, e.base(r)+"/sandbox/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	recorder := httptest.NewRecorder()
	e.mux.ServeHTTP(recorder, r)
	body := recorder.Body.Bytes()
	if how == AnswerHalf {
		body = body[:len(body)/2]
	}
	var token tokenAnswer
	if how == AnswerNoExpiry && json.Unmarshal(body, &token) == nil {
		body, _ = json.Marshal(map[string]string{"access_token": token.AccessToken, "token_type": token.TokenType, "scope": token.Scope})
	}
	maps.Copy(w.Header(), recorder.Header())
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(body)
}

// writeFault answers in the format of the endpoint: OAuth errors at the token endpoint, else an OperationOutcome.
func writeFault(w http.ResponseWriter, r *http.Request, fault Fault) {
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
	}
	if strings.HasPrefix(r.URL.Path, "/oauth/") {
		code := "invalid_request"
		if fault.Status >= 500 {
			code = "temporarily_unavailable"
		}
		writeOAuthError(w, &oauthError{fault.Status, code, "fault on demand"})
		return
	}
	issue, known := map[int]string{
		http.StatusUnauthorized:        "login",
		http.StatusForbidden:           "forbidden",
		http.StatusNotFound:            "not-found",
		http.StatusConflict:            "conflict",
		http.StatusPreconditionFailed:  "multiple-matches",
		http.StatusUnprocessableEntity: "invariant",
		http.StatusTooManyRequests:     "throttled",
		http.StatusServiceUnavailable:  "transient",
		http.StatusGatewayTimeout:      "timeout",
	}[fault.Status]
	if !known {
		issue = "exception"
	}
	writeOutcome(w, fault.Status, issue, "fault on demand")
}

// discardWriter discards an answer.
type discardWriter struct{}

func (discardWriter) Header() http.Header              { return http.Header{} }
func (discardWriter) Write(answer []byte) (int, error) { return len(answer), nil }
func (discardWriter) WriteHeader(int)                  {}
