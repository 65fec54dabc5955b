package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// isOverTarget reports whether an alert's parameter is the rule of a target.
func isOverTarget(parameter string) bool { return strings.HasSuffix(parameter, overTarget) }

// decideTarget pushes a value over its target once until a value is below again, and again when it
// has risen by the bound. A push about another change of it counts: the text has it. Source:
// docs/decisions/notifications.md, "Pages for warnings".
func (h PushHistory) decideTarget(d Draft, r vitals.Reading, t Thresholds) PushDecision {
	i := slices.IndexFunc(h.Parameters, func(p *vitals.Parameter) bool { return p.Name+overTarget == d.Finding.Parameter })
	if i < 0 || d.ResolvedByLater {
		return PushDecision{PushedKind, "Pushed: alerts of this kind always are."}
	}
	p := h.Parameters[i]
	rule, value := t.Change(p), r.Value(p)
	if rule.Target == nil || rule.Over == nil || value == nil || d.WorseThanNotified {
		return PushDecision{PushedKind, "Pushed: alerts of this kind always are."}
	}
	isOver := func(v float64) bool { return vitals.RoundHundredths(v-*rule.Target) >= *rule.Over }
	var begin time.Time // forLevel the last value that was not over
	for _, one := range h.Readings {
		if v := one.Values[i]; v != nil && !isOver(*v) && one.MeasuredAt.Before(r.MeasuredAt) {
			begin = one.MeasuredAt
			break
		}
	}
	for _, push := range h.Pushed {
		v := push.Values[i]
		if v == nil || !isOver(*v) || !push.MeasuredAt.After(begin) || IsSlowChange(push.Parameter) {
			continue
		}
		if vitals.RoundHundredths(*value-*v) >= *rule.Over {
			return PushDecision{PushedWorse, fmt.Sprintf("Pushed: %s %s is worse than %s, the last value pushed.", p.Label, show(*value), show(*v))}
		}
		return PushDecision{ListedByTrend, fmt.Sprintf("Not pushed: %s is over the target since %s was pushed.", p.Label, show(*v))}
	}
	return PushDecision{PushedKind, fmt.Sprintf("Pushed: %s %s is over the target of %s.", p.Label, show(*value), show(*rule.Target))}
}
