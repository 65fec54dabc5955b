package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes/web"
)

func filters(c *web.Call) error {
	f, err := web.ReadFilters(c)
	if err != nil {
		return err
	}
	return c.OK(f)
}

func TestFilters(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{get("/probe/", authz.Anyone, filters)}})
	const id = "01899c1e-3b7a-7000-8000-0123456789ab"
	for query, want := range map[string]string{
		"search=%20Zoe%CC%88%20":            `"Search":"Zoë"`,
		"patient_id=" + strings.ToUpper(id): `"ID":"` + id + `"`,
		"level=warning":                     `"Level":"warning"`,
		"":                                  `"Search":"","ID":"","Level":"","Ordering":"-created_at","Day":"","Active":null,"Minimum":null,"Between":{"From":"0001-01-01T00:00:00Z","To":"0001-01-01T00:00:00Z"},"Offset":0,"Size":20`,
		"unknown=x&level=critical&level=nonsense":           `"Level":"critical"`,
		"ordering=created_at":                               `"Ordering":"created_at"`,
		"day=2026-02-28":                                    `"Day":"2026-02-28"`,
		"active=TRUE":                                       `"Active":true`,
		"active=0":                                          `"Active":false`,
		"minimum=-3":                                        `"Minimum":-3`,
		"date_from=2026-01-15T08:00:00-05:00":               `"From":"2026-01-15T13:00:00Z"`,
		"date_from=2026-01-15&date_to=2026-01-15":           `"From":"2026-01-15T05:00:00Z","To":"2026-01-16T04:59:59.999999Z"`,
		"date_to=2026-03-08":                                `"To":"2026-03-09T03:59:59.999999Z"`, // 23 hours long in New York
		"date_from=2026-01-15&date_to=2026-01-15T05:00:00Z": `"To":"2026-01-15T05:00:00Z"`,
		"page=3&page_size=7":                                `"Offset":14,"Size":7`,
		"page_size=101":                                     `"Size":100`,
		"page_size=99999999999999999999":                    `"Size":100`,
	} {
		rec := s.do(request{target: "/api/v1/probe/?" + query})
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", query, rec.Code, rec.Body, want)
		}
	}
	for query, wrong := range map[string]string{
		"search=":              "search",
		"search=12345678901":   "search",
		"search=a%00b":         "search",
		"patient_id=7":         "patient_id",
		"patient_id=":          "patient_id",
		"level=normal":         "level",
		"level=":               "level",
		"ordering=name":        "ordering",
		"day=2026-02-29":       "day",
		"day=2026-2-1":         "day",
		"active=yes":           "active",
		"active=":              "active",
		"minimum=1.5":          "minimum",
		"date_from=yesterday":  "date_from",
		"date_from=1768484700": "date_from",
		"date_to=":             "date_to",
		"date_from=2026-01-16&date_to=2026-01-15": "date_from",
		"page=0":                     "page",
		"page=-99999999999999999999": "page",
		"page=":                      "page",
		"page_size=0":                "page_size",
		"page_size=ten":              "page_size",
		"active=yes&page=x&level=y":  "active,level,page",
		"level=%zz":                  "non_field_errors",
		"a=1;b=2":                    "non_field_errors",
	} {
		rec := s.do(request{target: "/api/v1/probe/?" + query})
		expect(t, rec, 400, "validation_error")
		if got := strings.Join(slices.Sorted(maps.Keys(errorOf(t, rec).Fields)), ","); got != wrong {
			t.Errorf("%s: wrong fields %q, want %q", query, got, wrong)
		}
	}
}

func TestPages(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/numbers/", authz.Anyone, func(c *web.Call) error { return web.ListNumbers(c, 45) }),
		get("/none/", authz.Anyone, func(c *web.Call) error { return web.ListNumbers(c, 0) }),
	}})
	const base = `"https://vigil.example.org/api/v1/numbers/?`
	for target, want := range map[string]string{
		"/numbers/":                       `"count":45,"next":` + base + `page=2","previous":null,"results":[0,1,`,
		"/numbers?page=2":                 `"next":` + base + `page=3","previous":` + base + `page=1","results":[20,`,
		"/numbers/?page=3":                `"next":null,"previous":` + base + `page=2","results":[40,41,42,43,44]}`,
		"/numbers/?page_size=45":          `"next":null,"previous":null,"results":[0,`,
		"/numbers/?page_size=44":          `"next":` + base + `page=2&page_size=44","previous":null,`,
		"/numbers/?search=R%26D+ü&page=1": `"next":` + base + `page=2&search=R%26D+%C3%BC",`,
		"/none/":                          `{"count":0,"next":null,"previous":null,"results":[]}`,
		"/none/?page=1":                   `{"count":0,"next":null,"previous":null,"results":[]}`,
	} {
		rec := s.do(request{target: "/api/v1" + strings.ReplaceAll(target, "ü", "%C3%BC")})
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", target, rec.Code, rec.Body, want)
		}
	}
	for _, target := range []string{
		"/numbers/?page=4", "/numbers/?page=2&page_size=45", "/numbers/?page=99999999999999999999", "/none/?page=2",
	} {
		rec := s.do(request{target: "/api/v1" + target})
		expect(t, rec, 404, "not_found")
		if errorOf(t, rec).Detail != "Invalid page." {
			t.Errorf("%s: %s", target, rec.Body)
		}
	}
}

func FuzzPaging(f *testing.F) {
	for _, seed := range []string{"1", "0", "-1", "101", "+5", " 7", "1e3", "9223372036854775808", "٣", ""} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, page, size string) {
		query := url.Values{"page": {page}, "page_size": {size}}.Encode()
		got, err := web.ReadFilters(web.NewTestCall(httptest.NewRequestWithContext(t.Context(), "GET", "/?"+query, nil), newYork))
		if err == nil && (got.Size < 1 || got.Size > 100 || got.Offset < 0 || got.Offset%got.Size != 0) {
			t.Errorf("page %q, page_size %q: %+v", page, size, got)
		}
	})
}

func FuzzDates(f *testing.F) {
	for _, seed := range []string{"2026-01-15", "2026-03-08", "2026-11-01", "2026-01-15T13:45:00Z", "2026-01-15 13:45:60+14:00", "1900-01-01", "2200-12-31", "x", ""} {
		f.Add(seed, "2026-01-15")
		f.Add("2026-01-15", seed)
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		query := url.Values{"date_from": {from}, "date_to": {to}}.Encode()
		got, err := web.ReadFilters(web.NewTestCall(httptest.NewRequestWithContext(t.Context(), "GET", "/?"+query, nil), newYork))
		if err != nil {
			return
		}
		if got.Between.From.IsZero() || got.Between.To.IsZero() || got.Between.From.After(got.Between.To) {
			t.Errorf("from %q to %q: %+v", from, to, got.Between)
		}
		if _, offset := got.Between.From.Zone(); offset != 0 {
			t.Errorf("from %q: not in UTC", from)
		}
		if day, err := time.Parse(time.DateOnly, from); err == nil && got.Between.From.In(newYork).Format(time.DateOnly) != day.Format(time.DateOnly) {
			t.Errorf("the first moment of %s is %v", from, got.Between.From.In(newYork))
		}
		if day, err := time.Parse(time.DateOnly, to); err == nil && got.Between.To.In(newYork).Format(time.DateOnly) != day.Format(time.DateOnly) {
			t.Errorf("the last moment of %s is %v", to, got.Between.To.In(newYork))
		}
	})
}

// The form of an error answer must not depend on the values in it.
func FuzzErrorBody(f *testing.F) {
	f.Add("detail", "field", "message")
	f.Add("\xff\x00", "a.b", "</script>&\u2028")
	f.Fuzz(func(t *testing.T, detail, field, message string) {
		var back struct{ Detail, Code string }
		body := web.ErrorBody(web.Translate(fmt.Errorf("x: %w", invalidField(detail, field, message))))
		if err := json.Unmarshal(body, &back); err != nil || back.Code != "validation_error" {
			t.Errorf("%s: %v", body, err)
		}
	})
}
