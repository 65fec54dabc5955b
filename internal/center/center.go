// Package center shows one list of several practices to a person who signs in once. It exchanges the person's ID token at each practice's service
// and passes requests on with the access tokens that it gets, so that every practice decides by its own accounts and roles. It stores nothing:
// tokens are in memory until they expire, and answers are passed on. Source: docs/decisions/center.md.
package center

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of a request to a practice: its time, and the size of an answer in bytes.
const (
	answerTime    = 3 * time.Second
	maxAnswerSize = 8 << 20
)

// The person's session lasts a little shorter than the access tokens of 15 minutes; the page then signs in again without a prompt.
const sessionLife = 14 * time.Minute

// Practice is a practice's service.
type Practice struct {
	Name string `json:"practice"`
	URL  string `json:"url"` // scheme and host, without a trailing slash
}

// Reasons why a practice is unavailable.
const (
	unreachable = "unreachable"
	timedOut    = "timeout"
	refused     = "error"
)

// Unavailable is a practice that is missing in an answer.
type Unavailable struct {
	Practice string `json:"practice"`
	Reason   string `json:"reason"`
}

// session is a signed-in person.
type session struct {
	ends   time.Time
	tokens map[string]string // by practice; none where the person has no account
	failed []Unavailable     // practices that did not answer the exchange
}

// Center holds the practices and the sessions.
type Center struct {
	practices []Practice
	client    *http.Client

	lock     sync.Mutex
	sessions map[string]session // by the cookie's value
}

// New returns a center of the practices.
func New(practices []Practice, client *http.Client) *Center {
	return &Center{practices: practices, client: client, sessions: map[string]session{}}
}

// SignIn exchanges an ID token at every practice and returns the key of the new session.
func (c *Center) SignIn(ctx context.Context, idToken string, now time.Time) string {
	s := session{ends: now.Add(sessionLife), tokens: map[string]string{}}
	var lock sync.Mutex
	c.each(c.practices, func(p Practice) {
		token, reason := c.exchange(ctx, p, idToken)
		lock.Lock()
		defer lock.Unlock()
		if token != "" {
			s.tokens[p.Name] = token
		} else if reason != "" {
			s.failed = append(s.failed, Unavailable{p.Name, reason})
		}
	})
	key := rand.Text()
	c.lock.Lock()
	defer c.lock.Unlock()
	for old, one := range c.sessions {
		if !one.ends.After(now) {
			delete(c.sessions, old)
		}
	}
	c.sessions[key] = s
	return key
}

// find returns a session that has not ended.
func (c *Center) find(key string, now time.Time) (session, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	s, found := c.sessions[key]
	return s, found && s.ends.After(now)
}

// SignOut ends a session.
func (c *Center) SignOut(key string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.sessions, key)
}

// each calls work for all practices at once.
func (c *Center) each(practices []Practice, work func(Practice)) {
	var all sync.WaitGroup
	for _, p := range practices {
		all.Go(func() { work(p) })
	}
	all.Wait()
}

// exchange returns an access token. Without one, a reason means that the practice did not answer; no reason means that the person has no account.
// Source: RFC 8693.
func (c *Center) exchange(ctx context.Context, p Practice, idToken string) (token, reason string) {
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {idToken},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/api/v1/auth/oidc/exchange/", strings.NewReader(form.Encode()))
	if err != nil {
		return "", unreachable
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, reason := c.do(r)
	var answer struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error"`
	}
	switch {
	case reason != "":
		return "", reason
	case json.Unmarshal(body, &answer) != nil:
		return "", refused
	case status == http.StatusOK && answer.AccessToken != "":
		return answer.AccessToken, ""
	case answer.Error == "invalid_grant":
		return "", ""
	}
	return "", refused
}

// do sends a request and reads its answer.
func (c *Center) do(r *http.Request) (status int, body []byte, reason string) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	response, err := c.client.Do(r.WithContext(ctx))
	if err == nil {
		defer response.Body.Close()
		body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerSize))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0, nil, timedOut
	case err != nil:
		return 0, nil, unreachable
	}
	return response.StatusCode, body, ""
}

// answer is what one practice answered.
type answer struct {
	Practice
	body json.RawMessage
}

// getAll gets a path from every practice where the person has an account. A practice that denies it to the person's role is left out, as one without
// an account is.
func (c *Center) getAll(ctx context.Context, s session, path string) (answers []answer, missing []Unavailable) {
	missing = slices.Clone(s.failed)
	var lock sync.Mutex
	c.each(c.practices, func(p Practice) {
		token := s.tokens[p.Name]
		if token == "" {
			return
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1"+path, nil)
		if err != nil {
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", "application/json")
		status, body, reason := c.do(r)
		if reason == "" && status != http.StatusOK && status != http.StatusForbidden {
			reason = refused
		}
		lock.Lock()
		defer lock.Unlock()
		switch {
		case reason != "":
			missing = append(missing, Unavailable{p.Name, reason})
		case status == http.StatusOK:
			answers = append(answers, answer{p, body})
		}
	})
	byName := func(a, b Unavailable) int { return cmp.Compare(a.Practice, b.Practice) }
	slices.SortFunc(missing, byName)
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.Name, b.Name) })
	return answers, missing
}

// List is the merged triage list. Rows are those of the practices, with the practice and the address of its console.
type List struct {
	Count       int               `json:"count"` // in all practices that answered
	Results     []json.RawMessage `json:"results"`
	Unavailable []Unavailable     `json:"unavailable"`
}

// row is a row of a practice's list, and what decides its place in the merged one.
type row struct {
	RiskScore              int     `json:"risk_score"`
	UnacknowledgedCritical int     `json:"unacknowledged_critical"`
	OldestUnacknowledgedAt *string `json:"oldest_unacknowledged_at"`
	text                   json.RawMessage
}

// Triage returns the first rows of all practices together, the most urgent first. Each practice's own order is kept among equal rows.
func (c *Center) Triage(ctx context.Context, s session, size int) (List, error) {
	answers, missing := c.getAll(ctx, s, fmt.Sprintf("/triage/patients/?page_size=%d", size))
	list, rows := List{Results: []json.RawMessage{}, Unavailable: missing}, []row{}
	for _, a := range answers {
		var page struct {
			Count   int               `json:"count"`
			Results []json.RawMessage `json:"results"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			list.Unavailable = append(list.Unavailable, Unavailable{a.Name, refused})
			continue
		}
		list.Count += page.Count
		for _, text := range page.Results {
			r := row{}
			if err := json.Unmarshal(text, &r); err != nil {
				return List{}, fmt.Errorf("read a row of %s: %w", a.Name, err)
			}
			var err error
			if r.text, err = named(a.Practice, text); err != nil {
				return List{}, err
			}
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.RiskScore, a.RiskScore), cmp.Compare(b.UnacknowledgedCritical, a.UnacknowledgedCritical), older(a.OldestUnacknowledgedAt, b.OldestUnacknowledgedAt))
	})
	for _, r := range rows[:min(size, len(rows))] {
		list.Results = append(list.Results, r.text)
	}
	return list, nil
}

// older orders by time, with none last.
func older(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

// named adds the practice to an object.
func named(p Practice, text json.RawMessage) (json.RawMessage, error) {
	about, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("name a row of %s: %w", p.Name, err)
	}
	text = json.RawMessage(strings.TrimSpace(string(text)))
	if len(text) < 3 || text[0] != '{' {
		return nil, fmt.Errorf("a row of %s is no object", p.Name)
	}
	return slices.Concat(about[:len(about)-1], []byte(","), text[1:]), nil
}

// OnCall is who is on call in each practice.
type OnCall struct {
	Results     []Duty        `json:"results"`
	Unavailable []Unavailable `json:"unavailable"`
}

// Duty is who is on call in a practice, and until when; no one if Name is nil.
type Duty struct {
	Practice
	Name  *string `json:"name"`
	Until *string `json:"until"`
}

// OnCall returns who is on call now in each practice.
func (c *Center) OnCall(ctx context.Context, s session) OnCall {
	answers, missing := c.getAll(ctx, s, "/on-call/turns/?days=1")
	view := OnCall{Results: []Duty{}, Unavailable: missing}
	for _, a := range answers {
		var rota struct {
			Turns []struct {
				Name   *string `json:"name"`
				EndsAt *string `json:"ends_at"`
			} `json:"turns"`
		}
		if err := json.Unmarshal(a.body, &rota); err != nil {
			view.Unavailable = append(view.Unavailable, Unavailable{a.Name, refused})
			continue
		}
		duty := Duty{Practice: a.Practice}
		if len(rota.Turns) > 0 { // the first is now
			duty.Name, duty.Until = rota.Turns[0].Name, rota.Turns[0].EndsAt
		}
		view.Results = append(view.Results, duty)
	}
	return view
}
