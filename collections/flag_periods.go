package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
)

// Comparison is a stretch of time with how a period is to stand to it: one of FHIR's prefixes.
type Comparison struct {
	Prefix      string
	From, Until time.Time // from a moment until before another
}

// FlagLasted keeps alerts whose time as a flag stands so to one of the stretches. It begins when the alert was made and ends when it was resolved; of
// what is open it has no end. Source: FHIR R4, search, "prefix", on what has a start and an end.
func FlagLasted(wanted []Comparison) dbx.Expression {
	return built(func(bind func(any) string) string {
		terms := make([]string, len(wanted))
		for i, c := range wanted {
			terms[i] = c.ofFlag(bind(Instant(c.From)), bind(Instant(c.Until)))
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// ofFlag also bounds the start where the end tells of it, since alerts are found by their start.
func (c Comparison) ofFlag(from, until string) string {
	within := "(created_at >= " + from + " AND created_at < " + until + " AND resolved_at != '' AND resolved_at < " + until + ")"
	goesOn, before := "(resolved_at = '' OR resolved_at >= "+until+")", "created_at < "+from
	switch c.Prefix {
	case "ne":
		return "NOT " + within
	case "gt":
		return goesOn
	case "lt":
		return before
	case "ge":
		return "(" + goesOn + " OR " + within + ")"
	case "le":
		return "(" + before + " OR " + within + ")"
	case "sa":
		return "created_at >= " + until
	case "eb":
		return "(" + before + " AND resolved_at != '' AND resolved_at < " + from + ")"
	case "ap":
		return "(created_at < " + until + " AND (resolved_at = '' OR resolved_at >= " + from + "))"
	}
	return within
}
