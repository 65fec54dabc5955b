package fhirserver

import (
	"time"

	"github.com/vigilhealth/vigil/collections"
)

// comparison is what a date with a prefix asks of a period.
func comparison(text string, zone *time.Location, now time.Time) (collections.DateComparison, bool) {
	prefix, value := cutPrefix(text)
	from, until, ok := parseDate(value, zone)
	if ok && prefix == "ap" {
		from, until = around(from, until, now)
	}
	return collections.DateComparison{Prefix: prefix, From: from, Until: until}, ok
}

func byFlagTime(s *Search, in *reading, v values) string {
	list := make([]collections.DateComparison, len(v.any))
	for i, text := range v.any {
		var ok bool
		if list[i], ok = comparison(text, in.engine.Zone, in.now); !ok {
			return msgDate
		}
	}
	s.dated = true
	s.narrow(collections.FlagPeriod(list))
	return ""
}
