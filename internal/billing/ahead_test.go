package billing_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vigilhealth/vigil/internal/billing"
)

// Chunks are stored in their order, however long each was planned; what goes wrong with one ends it, with nothing under way any more.
func TestPlannedAhead(t *testing.T) {
	wrong := errors.New("no luck")
	for name, test := range map[string]struct {
		failNext, failPlan, failStore string // the chunk before which, or with which, it goes wrong
		panics                        string
		want                          string
		says                          string
	}{
		"everything":         {want: "a b c d e"},
		"no more can be had": {failNext: "d", says: "no luck"},
		"a plan fails":       {failPlan: "c", want: "a b", says: "no luck"},
		"a plan panics":      {panics: "c", want: "a b", says: "panicked (string)"},
		"storing fails":      {failStore: "b", want: "a", says: "no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			var under atomic.Int32
			var stored []string
			chunks := []string{"a", "b", "c", "d", "e"}
			first := make(chan struct{}) // the second chunk is planned before the first
			err := billing.AheadForTest(func() ([]string, error) {
				if len(chunks) == 0 {
					return nil, nil
				}
				some := chunks[:1]
				if chunks = chunks[1:]; some[0] == test.failNext {
					return nil, wrong
				}
				return some, nil
			}, func(ids []string) (string, error) {
				under.Add(1)
				defer under.Add(-1)
				switch ids[0] {
				case "a":
					<-first
				case "b":
					close(first)
				}
				switch ids[0] {
				case test.failPlan:
					return "", wrong
				case test.panics:
					panic("Mummel")
				}
				return ids[0], nil
			}, func(chunk string) error {
				if chunk == test.failStore {
					return wrong
				}
				stored = append(stored, chunk)
				return nil
			})
			if under.Load() != 0 {
				t.Error("it ended, and something is under way")
			}
			if got := strings.Join(stored, " "); test.want != "" && got != test.want || !slices.IsSorted(stored) {
				t.Errorf("stored %q, not %q", got, test.want)
			}
			if said := ""; err != nil || test.says != "" {
				if err != nil {
					said = err.Error()
				}
				if test.says == "" || !strings.Contains(said, test.says) || strings.Contains(said, "Mummel") {
					t.Errorf("it says %q", said)
				}
			}
		})
	}
}
