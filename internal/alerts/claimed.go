package alerts

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Claimed are the values behind an alert about what became no reading: those that were reported, and the change that it is named for. A weight
// says nothing by itself; what is critical is how much it has gained, and that is the alert's own value.
// Source: docs/decisions/triage.md, "Critical bands".
func (o Open) Claimed(reported []Reported) []Reported {
	for _, p := range vitals.Changing {
		if strings.HasPrefix(o.Parameter, p.Name+"_") {
			return append(reported, Reported{p, o.Value})
		}
	}
	return reported
}

// WorseChange is [Worse] of a critical change that is no reading yet.
func WorseChange(f Finding, told []Known) bool {
	return worse([]extreme{changed(f.Parameter, f.Value, f.Threshold)}, told, false)
}
