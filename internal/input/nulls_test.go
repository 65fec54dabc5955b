package input_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

func TestRefuseNulls(t *testing.T) {
	never := &input.Members{Forbidden: true}
	members := &input.Members{Inside: map[string]*input.Members{
		"role":    never,
		"codes":   {Items: never},
		"address": {Forbidden: true, Inside: map[string]*input.Members{"city": never}},
		"team":    {Items: &input.Members{Inside: map[string]*input.Members{"user": never}}},
	}}
	for body, want := range map[string]string{
		`{}`:                                       "",
		`{"role":"null"}`:                          "",
		`{"role":null}`:                            "role",
		`{"note":null,"unknown":{"role":null}}`:    "",
		`{"address":null,"role":null}`:             "address role",
		`{"address":{"city":null,"line2":null}}`:   "address.city",
		`{"address":[null]}`:                       "",
		`{"codes":["a",null,null]}`:                "codes.1 codes.2",
		`{"codes":null}`:                           "",
		`{"team":[{"user":1},{"user":null},null]}`: "team.1.user",
		`{"unknown":[[null]],"ro\u006ce":null}`:    "role",
	} {
		err := input.RefuseNulls([]byte(body), members)
		got := ""
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			got = strings.Join(slices.Sorted(maps.Keys(refused.Fields)), " ")
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is refused for %q, want %q", body, got, want)
		}
		if err := input.RefuseNulls([]byte(body), nil); err != nil {
			t.Errorf("%s is refused where nothing is forbidden: %v", body, err)
		}
	}
}
