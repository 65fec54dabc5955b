package alerts

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// OneDelivery is the longest gap between receipts from one device memory; a person who measures
// again needs longer. Source: docs/decisions/alerts.md, "Early warning score".
const OneDelivery = time.Minute

// newestValues holds per parameter the newest device value with a trusted time, and newer ones: the
// last patient entry, the newest of each unproven clock, and all with a doubtful time.
type newestValues map[*vitals.Parameter][]ScoredValue

func (n newestValues) add(v ScoredValue) {
	switch {
	case v.Clock != nil:
		if slices.ContainsFunc(n[v.Parameter], func(known ScoredValue) bool { return v.isReplacedBy(known) }) {
			return
		}
		n[v.Parameter] = slices.DeleteFunc(n[v.Parameter], func(known ScoredValue) bool { return known.isReplacedBy(v) || known.isSameMoment(v) })
	case v.HidesNone, v.Doubtful: // replaces none: whether it is newer is not known
	case v.Typed:
		n[v.Parameter] = slices.DeleteFunc(n[v.Parameter], func(known ScoredValue) bool { return known.Typed })
	default:
		n[v.Parameter] = nil
	}
	n[v.Parameter] = append(n[v.Parameter], v)
}

// isReplacedBy reports whether another value is newer by the same unproven clock.
func (v ScoredValue) isReplacedBy(other ScoredValue) bool {
	return v.Clock != nil && other.Clock != nil && v.Clock.Device == other.Clock.Device && v.Clock.At.Before(other.Clock.At)
}

func (v ScoredValue) isSameMoment(other ScoredValue) bool {
	return v.Clock != nil && other.Clock != nil && *v.Clock == *other.Clock
}

// isApartFrom reports whether two values of unproven clocks that arrived in one delivery were not measured together.
func (v ScoredValue) isApartFrom(other ScoredValue) bool {
	return v.At.Sub(other.At).Abs() < OneDelivery && v.Clock.At.Sub(other.Clock.At).Abs() > earlyWarningWindow
}

// score returns the gravest score of values since a time that may have been measured together, and whether a repeat must decide about its level.
func (n newestValues) score(r EarlyWarningRules, from time.Time) EarlyWarning {
	gravest := n.gravest(r, from)
	var until time.Time
	sure := newestValues{}
	for p, values := range n {
		for _, v := range values {
			if v.WaitsUntil.IsZero() {
				sure[p] = append(sure[p], v)
			} else if v.WaitsUntil.After(until) {
				until = v.WaitsUntil
			}
		}
	}
	if gravest.Level != "" && !until.IsZero() && sure.gravest(r, from).Level != gravest.Level {
		gravest.WaitsUntil = until
	}
	return gravest
}

func (n newestValues) gravest(r EarlyWarningRules, from time.Time) (gravest EarlyWarning) {
	unproven := n.unproven(from)
	if len(unproven) == 0 {
		return r.assess(n.within(r, from, nil))
	}
	for i, first := range unproven {
		together := []ScoredValue{first}
		for k, v := range unproven {
			if k != i && !slices.ContainsFunc(together, v.isApartFrom) {
				together = append(together, v)
			}
		}
		if found := r.assess(n.within(r, from, together)); i == 0 || found.exceeds(gravest) {
			gravest = found
		}
		if len(together) == len(unproven) {
			break
		}
	}
	return gravest
}

// unproven returns the values of unproven clocks since a time, the newest first.
func (n newestValues) unproven(from time.Time) (values []ScoredValue) {
	for _, p := range EarlyWarningParameters {
		for _, v := range n[p] {
			if v.Clock != nil && !v.At.Before(from) {
				values = append(values, v)
			}
		}
	}
	slices.SortStableFunc(values, func(a, b ScoredValue) int { return b.At.Compare(a.At) })
	return values
}

// within returns one value per parameter since from; of unproven clocks only those given. A patient
// entry or a doubtful time never hides a more severe value.
func (n newestValues) within(r EarlyWarningRules, from time.Time, unproven []ScoredValue) (values []ScoredValue) {
	for _, p := range EarlyWarningParameters {
		var gravest *ScoredValue
		for _, v := range n[p] {
			counts := !v.At.Before(from) && (v.Clock == nil || slices.Contains(unproven, v))
			if counts && (gravest == nil || r.points(p, v.Value) >= r.points(p, gravest.Value)) {
				gravest = &v
			}
		}
		if gravest != nil {
			values = append(values, *gravest)
		}
	}
	return values
}

// scoredPart is the source of a scored parameter, which decides what ends it: typed, if only the
// patient reported it; clock, if only one device with an unproven clock did.
type scoredPart struct {
	typed bool
	clock *DeviceTime
}

func (s scoredPart) with(v ScoredValue) scoredPart {
	s.typed = s.typed && v.Typed
	if v.Clock == nil || s.clock != nil && s.clock.Device != v.Clock.Device {
		s.clock = nil
	}
	return s
}

// isEndedBy reports whether a value is at least as reliable as those of a part.
func (s scoredPart) isEndedBy(v ScoredValue) bool {
	switch {
	case v.Clock != nil:
		return s.clock != nil && s.clock.Device == v.Clock.Device
	case v.Doubtful, v.HidesNone:
		return false
	}
	return s.typed || !v.Typed
}

// isFresh reports whether all parts of a run were measured again since a time, at least as reliably.
func (n newestValues) isFresh(run EarlyWarningRun, from time.Time) bool {
	for p, part := range run.parts {
		if !slices.ContainsFunc(n[p], func(v ScoredValue) bool { return !v.At.Before(from) && part.isEndedBy(v) }) {
			return false
		}
	}
	return true
}
