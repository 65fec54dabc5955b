package web_test

import (
	"io"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type named struct {
	Name validate.String `json:"name"`
}

var bodyRows = []web.Route{
	post("/named/", authz.UseOwnAccount, func(c *web.Call) error {
		var body named
		if err := c.Decode(&body); err != nil {
			return err
		}
		return c.Created(body.Name.Value)
	}),
	post("/optional/", authz.Anyone, func(c *web.Call) error {
		body := named{Name: validate.Of("left out")}
		if err := c.DecodeOptional(&body); err != nil {
			return err
		}
		return c.OK(body.Name.Value)
	}),
	{Method: "POST", Path: "/webhook/", Permission: authz.SignedByGateway, Limit: ratelimit.Webhook, Handle: func(c *web.Call) error {
		raw, err := c.Body()
		if err != nil {
			return err
		}
		return c.OK(len(raw))
	}},
}

func TestBodies(t *testing.T) {
	s := serve(t, setup{rows: bodyRows})
	padded := func(size int) string { return `{"name":"a"` + strings.Repeat(" ", size-12) + `}` }
	for name, test := range map[string]struct {
		path, kind, body string
		status           int
		answer           string // body of a success, code of an error
	}{
		"json":                   {"/named/", "application/json", `{"name":"Zoë"}`, 201, `"Zoë"`},
		"charset":                {"/named/", `Application/JSON; charset="UTF-8"`, `{"name":"a"}`, 201, `"a"`},
		"json suffix":            {"/named/", "application/fhir+json", `{"name":"a"}`, 201, `"a"`},
		"other charset":          {"/named/", "application/json; charset=latin1", `{"name":"a"}`, 415, "unsupported_media_type"},
		"form":                   {"/named/", "application/x-www-form-urlencoded", `name=a`, 415, "unsupported_media_type"},
		"text":                   {"/named/", "text/plain", `{"name":"a"}`, 415, "unsupported_media_type"},
		"no type":                {"/named/", "", `{"name":"a"}`, 415, "unsupported_media_type"},
		"malformed type":         {"/named/", "json;;", `{"name":"a"}`, 415, "unsupported_media_type"},
		"malformed":              {"/named/", "application/json", `{"name":`, 400, "parse_error"},
		"trailing data":          {"/named/", "application/json", `{"name":"a"} {}`, 400, "parse_error"},
		"list":                   {"/named/", "application/json", `[]`, 400, "parse_error"},
		"null":                   {"/named/", "application/json", `null`, 400, "parse_error"},
		"nothing":                {"/named/", "", "", 400, "parse_error"},
		"depth 32":               {"/named/", "application/json", `{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `,"name":"a"}`, 201, `"a"`},
		"depth 33":               {"/named/", "application/json", `{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, 400, "parse_error"},
		"depth 10000":            {"/named/", "application/json", strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), 400, "parse_error"},
		"depth 100000, unclosed": {"/named/", "application/json", `{"a":` + strings.Repeat("[", 100_000), 400, "parse_error"},
		"largest":                {"/named/", "application/json", padded(1 << 20), 201, `"a"`},
		"too large":              {"/named/", "application/json", padded(1<<20 + 1), 413, "payload_too_large"},
		"optional, left out":     {"/optional/", "", "", 200, `"left out"`},
		"optional, sent":         {"/optional/", "application/json", `{"name":"a"}`, 200, `"a"`},
		"optional, malformed":    {"/optional/", "application/json", `{`, 400, "parse_error"},
		"optional, wrong type":   {"/optional/", "text/csv", `name`, 415, "unsupported_media_type"},
		"a stranger's largest":   {"/optional/", "application/json", padded(64 << 10), 200, `"a"`},
		"a stranger's too large": {"/optional/", "application/json", padded(64<<10 + 1), 413, "payload_too_large"},
		"webhook, largest":       {"/webhook/", "", strings.Repeat("x", 64<<10), 200, "65536"},
		"webhook, too large":     {"/webhook/", "", strings.Repeat("x", 64<<10+1), 413, "payload_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := s.do(request{method: "POST", target: "/api/v1" + test.path, token: "admin", body: test.body, header: map[string]string{"Content-Type": test.kind}})
			if test.status < 400 {
				expect(t, rec, test.status, "")
				if rec.Body.String() != test.answer {
					t.Errorf("answered %s, want %s", rec.Body, test.answer)
				}
				return
			}
			expect(t, rec, test.status, test.answer)
		})
	}
	compressed := request{method: "POST", target: "/api/v1/named/", token: "admin", body: "x", header: map[string]string{"Content-Encoding": "gzip"}}
	expect(t, s.do(compressed), 415, "unsupported_media_type")
}

// Without Content-Length the size shows only while reading.
func TestChunkedBodyTooLarge(t *testing.T) {
	s := serve(t, setup{rows: bodyRows})
	for path, size := range map[string]int64{"/optional/": 64<<10 + 1, "/webhook/": 64<<10 + 1} {
		res, err := s.wire("POST", "/api/v1"+path, io.LimitReader(spaces{}, size))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 413 {
			t.Errorf("%s: %d, want 413", path, res.StatusCode)
		}
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
