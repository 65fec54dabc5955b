package web

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"
)

// mountConflictingMethods keeps a literal segment from matching a parameter: DELETE patients/archived/ must not delete
// a patient. The router prefers a literal only among rows of one method, so a literal path answers 405 to methods that
// only the parameter path has. Source: docs/decisions/conventions.md, "Method handling".
func mountConflictingMethods(group *router.RouterGroup[*core.RequestEvent], routes []Route, refuse func(*core.RequestEvent) error) {
	offered := map[string][]string{} // methods by path
	for _, row := range routes {
		offered[row.Path] = append(offered[row.Path], row.Method)
	}
	segments := make(map[string][]string, len(offered))
	for path := range offered {
		segments[path] = strings.Split(path, "/")
	}
	for path, own := range offered {
		var taken []string
		for other, methods := range offered {
			if coversMore(segments[other], segments[path]) {
				taken = append(taken, methods...)
			}
		}
		for _, method := range Methods {
			if slices.Contains(own, method) || !slices.Contains(taken, method) {
				continue
			}
			for _, pattern := range Patterns(path) {
				group.Route(method, pattern, refuse)
			}
		}
	}
}

// coversMore reports whether a template matches every path of another one and more; both are given as segments.
func coversMore(segments, others []string) bool {
	if len(segments) != len(others) {
		return false
	}
	more := false
	for i, segment := range segments {
		switch parameter := strings.HasPrefix(segment, "{"); {
		case parameter && !strings.HasPrefix(others[i], "{"):
			more = true
		case !parameter && segment != others[i]:
			return false
		}
	}
	return more
}

// parameters counts the parameters of a pattern; the pattern with fewer is more specific.
func parameters(pattern string) int { return strings.Count(strings.TrimSuffix(pattern, "{$}"), "{") }
