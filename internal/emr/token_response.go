package emr

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// maxTokenAnswer bounds the answer of a token endpoint.
const maxTokenAnswer = 1 << 20

// tokenHTTP returns the HTTP client of token requests. It gives the answers of token endpoints the one form that x/oauth2 reads: JSON is
// JSON for any Content-Type, and expires_in is a whole number or missing.
func (t *transport) tokenHTTP() *http.Client {
	client := *t.http
	client.Transport = tokenAnswers{client.Transport}
	return &client
}

type tokenAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tokenAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) == nil && answer != nil {
		body = withWholeLifetime(body, answer)
		resp.Header = resp.Header.Clone()
		resp.Header.Set("Content-Type", "application/json")
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// withWholeLifetime rounds expires_in down, and leaves out one that is not a positive number.
func withWholeLifetime(body []byte, answer map[string]json.RawMessage) []byte {
	text := strings.Trim(strings.TrimSpace(string(answer["expires_in"])), `"`)
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && seconds >= 1 {
		answer["expires_in"] = json.RawMessage(strconv.FormatInt(int64(math.Min(seconds, math.MaxInt32)), 10))
	} else {
		delete(answer, "expires_in")
	}
	if changed, err := json.Marshal(answer); err == nil {
		return changed
	}
	return body
}
