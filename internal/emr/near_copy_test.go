package emr_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

// A result that may be the reading in the EMR's own form is no "not found": a person is asked, and nothing is sent again.
func TestNearCopy(t *testing.T) {
	measured := now.Add(42 * time.Second) // 13:45:42
	stored := func(change ...string) string {
		o := strings.NewReplacer(change...).Replace(string(weightOf("", "erx-1", measured, 80.25)))
		return strings.Replace(strings.Replace(o, `"identifier"`, `"note"`, 1), `"resourceType":"Observation"`, `"resourceType":"Observation","id":"e-1"`, 1)
	}
	const minute = `"2026-01-15T13:45:00Z"`
	for name, test := range map[string]struct {
		results []string
		isNear  bool
	}{
		"to the minute":               {[]string{stored(`"2026-01-15T13:45:42Z"`, minute)}, true},
		"rounded to the minute":       {[]string{stored(`"2026-01-15T13:45:42Z"`, `"2026-01-15T13:46:00Z"`)}, true},
		"without seconds":             {[]string{stored(`"2026-01-15T13:45:42Z"`, `"2026-01-15T13:45Z"`)}, true},
		"in another zone":             {[]string{stored(`"2026-01-15T13:45:42Z"`, `"2026-01-15T08:45:00-05:00"`)}, true},
		"an instant":                  {[]string{stored("effectiveDateTime", "effectiveInstant")}, true},
		"a date":                      {[]string{stored(`"2026-01-15T13:45:42Z"`, `"2026-01-15"`)}, true},
		"a rounded value":             {[]string{stored("80.25", "80.3")}, true},
		"a cut value":                 {[]string{stored("80.25", "80")}, true},
		"another unit":                {[]string{stored("80.25", "176.92", `"kg"`, `"[lb_av]"`)}, true},
		"after another one":           {[]string{stored("80.25", "70"), stored("13:45:42", "13:45:00")}, true},
		"another value":               {[]string{stored(`"2026-01-15T13:45:42Z"`, minute, "80.25", "80.4")}, false},
		"another code":                {[]string{stored(`"2026-01-15T13:45:42Z"`, minute, "29463-7", "8867-4")}, false},
		"another reading's by its id": {[]string{strings.Replace(stored("13:45:42", "13:45:00"), `"note":[{`, `"identifier":[{"x":"",`, 1)}, false},
	} {
		for cause, first := range map[string]int{"no answer": 0, "500": 500} {
			t.Run(name+", "+cause, func(t *testing.T) {
				results := slices.Clone(test.results) // bundle changes them
				if name == "another reading's by its id" {
					results = []string{strings.Replace(results[0], "urn:uuid:", "urn:uuid:0192f0c1-2a3b-7c4d-8e5f-60718293a4b7", 1)}
				}
				client, creates := searchFakeAfter(t, first, func(url.Values) (int, string) { return 200, bundle(results...) },
					&emr.Offer{Create: true, Search: true, SearchParameters: []string{"patient", "category", "date"}})
				_, err := client.CreateObservation(t.Context(), observationID, weightOf(observationID, "erx-1", measured, 80.25), requestID)
				e := asError(t, err)
				if test.isNear && (creates.Load() != 1 || e == nil || e.Code != emr.CodeOutcomeUnknown || !e.NeedsPerson || !e.Ambiguous) {
					t.Errorf("sent %d times, %+v", creates.Load(), e)
				}
				if !test.isNear && (creates.Load() != 2 || e != nil) {
					t.Errorf("sent %d times, %+v", creates.Load(), e)
				}
			})
		}
	}
}
