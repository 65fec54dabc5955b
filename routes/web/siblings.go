package web

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"
)

// mountSiblings keeps a word beside a parameter from being taken for one: DELETE patients/archived/ is no request to delete a patient. The
// router prefers the word only among rows of one method, so a path that lacks a method which a wider one has is told to refuse it.
// Source: docs/decisions/conventions.md, "Method handling".
func mountSiblings(group *router.RouterGroup[*core.RequestEvent], routes []Route, refuse func(*core.RequestEvent) error) {
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
			if wider(segments[other], segments[path]) {
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

// wider reports whether a template holds every path of another one, and more; both by their segments.
func wider(segments, others []string) bool {
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

// parameters counts those of a pattern: of two patterns that hold a path, the one with fewer is meant.
func parameters(pattern string) int { return strings.Count(strings.TrimSuffix(pattern, "{$}"), "{") }
