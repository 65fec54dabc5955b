package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Preferred picks the media type the Accept header likes best, in the order of the offers when it does not care;
// "" when it wants none of them. Without offers there is no body to choose a type for. Source: RFC 9110, 12.5.1.
func Preferred(h http.Header, offers ...string) string {
	if len(offers) == 0 {
		return "*/*"
	}
	ranges := mediaRanges(h)
	if len(ranges) == 0 {
		return offers[0]
	}
	best, bestQuality := "", 0.0
	for _, offer := range offers {
		if q := quality(ranges, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best
}

type mediaRange struct {
	kind    string // "*/*", "application/*" or a whole media type
	quality float64
}

func mediaRanges(h http.Header) []mediaRange {
	var ranges []mediaRange
	for _, part := range strings.Split(strings.Join(h.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue // a range that cannot be read asks for nothing
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || q < 0 || q > 1 {
				q = 1
			}
		}
		ranges = append(ranges, mediaRange{kind, q})
	}
	return ranges
}

// quality of an offer is that of the closest range: the type itself, else its family, else everything.
func quality(ranges []mediaRange, offer string) float64 {
	family, _, _ := strings.Cut(offer, "/")
	for _, kind := range []string{offer, family + "/*", "*/*"} {
		for _, r := range ranges {
			if r.kind == kind {
				return r.quality
			}
		}
	}
	return 0
}
