package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

var (
	supplies    = []string{billing.DeviceSupply, billing.ShortSupply}
	managements = []string{billing.FirstTwenty, billing.NextTwenty, billing.FirstTen, billing.Interpretation}
)

func in(span billing.Span, day string) bool { return span.Start <= day && day <= span.End }

// ofMonth are a patient's lines with a service date of the month.
func (f Facts) ofMonth(patient string) (list []Line) {
	for _, line := range f.Lines[patient] {
		if in(f.Month, line.Service) {
			list = append(list, line)
		}
	}
	return list
}

// of are the lines with one of some codes, by the beginning of their periods. A line without a period has that of its day.
func of(lines []Line, codes []string) (list []Line) {
	for _, line := range lines {
		if slices.Contains(codes, line.Code) {
			line.Start, line.End = cmp.Or(line.Start, line.Service), cmp.Or(line.End, line.Service)
			list = append(list, line)
		}
	}
	slices.SortFunc(list, func(a, b Line) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	return list
}

// A visit of the first billed day itself does not count: it has to be from before.
func noEstablishedVisit(f Facts, out *found) {
	for patient := range f.Lines {
		if visit := f.Visit[patient]; visit == "" || visit >= f.First[patient] {
			out.count++
			out.lines(f.ofMonth(patient)...)
		}
	}
}

// Where a whole period would fit between two, they are not in a row. Two that overlap are one period here, and a pattern of their own.
func supplyWithoutManagement(f Facts, out *found) {
	for _, lines := range f.Lines {
		managed, run, isFound := of(lines, managements), [][]Line{}, false
		for _, line := range of(lines, supplies) {
			last := len(run) - 1
			switch {
			case isManaged(line, managed):
				run = nil
			case last >= 0 && line.Start <= run[last][0].End:
				run[last] = append(run[last], line)
			case last >= 0 && billing.DaysBetween(run[last][0].End, line.Start) > supplyDays:
				run = [][]Line{{line}}
			default:
				run = append(run, []Line{line})
			}
			if len(run) >= periodsInARow && in(f.Month, line.Service) {
				out.lines(slices.Concat(run[len(run)-periodsInARow:]...)...)
				isFound = true
			}
		}
		if isFound {
			out.count++
		}
	}
}

// supplyDays are the days of a period of device supply.
const supplyDays = 30

// isManaged reports whether there was management in the period of a supply, or in the month that the supply is billed in.
func isManaged(supply Line, managed []Line) bool {
	return slices.ContainsFunc(managed, func(m Line) bool {
		return in(billing.Span{Start: supply.Start, End: supply.End}, m.Service) || m.Service[:len("2006-01")] == supply.Service[:len("2006-01")]
	})
}

// Three times the mean of three months is their sum.
func enrolmentSpike(f Facts, out *found) {
	before, enrolled := 0, []string{}
	start := billing.ParseDay(f.Month.Start).AddDate(0, -monthsBefore, 0).Format(time.DateOnly)
	for patient, day := range f.First {
		switch {
		case in(f.Month, day):
			enrolled = append(enrolled, patient)
		case start <= day && day < f.Month.Start:
			before++
		}
	}
	if len(enrolled) < leastEnrolled || len(enrolled) < before {
		return
	}
	out.count = len(enrolled)
	for _, patient := range enrolled {
		out.lines(f.ofMonth(patient)...)
	}
}

func severalDevices(f Facts, out *found) {
	for _, lines := range f.Lines {
		list, isFound := of(lines, supplies), false
		for i, a := range list {
			for _, b := range list[i+1:] {
				if b.Start <= a.End && (in(f.Month, a.Service) || in(f.Month, b.Service)) {
					out.lines(a, b)
					isFound = true
				}
			}
		}
		if isFound {
			out.count++
		}
	}
}

// Whole minutes are compared, as they are billed.
func sameMinutes(f Facts, out *found) {
	type equal struct {
		person  string
		minutes int
	}
	groups := map[equal][]Stretch{}
	for _, s := range f.Time {
		if minutes := int(s.Length / time.Minute); minutes > 0 && s.beganThisMonth {
			groups[equal{s.Person, minutes}] = append(groups[equal{s.Person, minutes}], s)
		}
	}
	for _, group := range groups {
		if len(group) >= equalMinutes {
			out.count += len(group)
			out.time(group...)
		}
	}
}

func lateEntries(f Facts, out *found) {
	for _, s := range f.Time {
		if s.beganThisMonth && s.Recorded.Sub(s.To) > lateAfter {
			out.count++
			out.time(s)
		}
	}
}

// What reaches over midnight belongs to both days, to each with its own part.
func impossibleDays(f Facts, out *found) {
	type date struct{ person, day string }
	sums, behind := map[date]time.Duration{}, map[date][]Stretch{}
	for _, s := range f.Time {
		for at, left := s.From, s.Length; left > 0; {
			next := collections.StartOfNextDay(at.In(f.Zone))
			part := min(left, next.Sub(at))
			key := date{s.Person, at.In(f.Zone).Format(time.DateOnly)}
			sums[key] += part
			behind[key] = append(behind[key], s)
			at, left = next, left-part
		}
	}
	for key, sum := range sums {
		if sum > longestDay && in(f.Month, key.day) {
			out.count++
			out.time(behind[key]...)
		}
	}
}

func typedDays(f Facts, out *found) {
	for patient, days := range f.Days {
		if 2*days.Typed > days.WithData {
			out.count++
			out.lines(f.ofMonth(patient)...)
		}
	}
}

// A line counts when its period shares a day with what somebody else bills.
func competingServices(f Facts, out *found) {
	for patient, spans := range f.Elsewhere {
		shared := slices.DeleteFunc(f.ofMonth(patient), func(line Line) bool {
			period := billing.Span{Start: cmp.Or(line.Start, line.Service), End: cmp.Or(line.End, line.Service)}
			return !slices.ContainsFunc(spans, func(s billing.Span) bool { return s.Meets(period) })
		})
		if len(shared) > 0 {
			out.count++
			out.lines(shared...)
		}
	}
}
