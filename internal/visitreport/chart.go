package visitreport

import (
	"fmt"
	"math"
	"time"

	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	chartTall  = 53.0
	secondTall = 30.0
	labelsWide = 27.0 // next to the chart
	scaleWide  = 9.0
	// gapDays without a reading break the line. Up to maxRings readings are drawn as rings.
	gapDays  = 2
	maxRings = 130
)

// plot maps times and values to positions on the sheet.
type plot struct {
	s                *pdf.Sheet
	x, y, w, h       float64
	from, to         time.Time
	low, high, scale float64
}

func (p plot) xAt(t time.Time) float64 {
	return p.x + p.w*t.Sub(p.from).Hours()/p.to.Sub(p.from).Hours()
}

func (p plot) yAt(value float64) float64 {
	return p.y + p.h - (min(max(value, p.low), p.high)-p.low)*p.scale
}

// chart draws both pressures on one axis, each with its range.
func (r *Report) chart(s *pdf.Sheet, y, tall float64) float64 {
	y = r.heading(s, left, y, wide, "Blood pressure, mmHg", "")
	var pressures []Point
	for _, p := range r.points {
		if p.Reading.Value(vitals.Systolic) != nil && p.Reading.Value(vitals.Diastolic) != nil {
			pressures = append(pressures, p)
		}
	}
	if len(pressures) == 0 {
		s.Text(left, y+6, plain, fmt.Sprintf("No blood pressure was measured in these %d days.", r.request.Days))
		return y + 8
	}
	p := r.plotOf(s, y+3, tall, pressures)
	r.bands(p)
	r.scale(p)
	for _, line := range []struct {
		of  *vitals.Parameter
		ink pdf.Ink
	}{{vitals.Systolic, pdf.Teal}, {vitals.Diastolic, pdf.Violet}} {
		r.line(p, pressures, line.of, line.ink)
	}
	y = p.y + p.h + 8
	s.Text(left, y, small, "Upper line systolic, lower diastolic. Shaded is in range; ◆ is at or beyond the warning limit, ▲ the critical one; ? is suspect and not counted.")
	y += 3.5
	s.Text(left, y, small, "The line breaks where two days or more passed without a reading.")
	return y
}

func (r *Report) plotOf(s *pdf.Sheet, y, tall float64, points []Point) plot {
	p := plot{s: s, x: left + scaleWide, y: y, w: wide - scaleWide - labelsWide, h: tall, from: r.from, to: r.end.In(r.zone).Add(12 * time.Hour)}
	p.low, p.high = math.Inf(1), math.Inf(-1)
	take := func(value float64) { p.low, p.high = min(p.low, value), max(p.high, value) }
	for _, point := range points {
		take(*point.Reading.Value(vitals.Systolic))
		take(*point.Reading.Value(vitals.Diastolic))
	}
	for _, bound := range []*float64{r.bounds.Limits(vitals.Diastolic).Low, r.bounds.Limits(vitals.Systolic).High} {
		if bound != nil {
			take(*bound)
		}
	}
	p.low, p.high = math.Floor(p.low/10)*10-5, math.Ceil(p.high/10)*10+5
	p.scale = p.h / (p.high - p.low)
	return p
}

// bands shades the ranges and labels the bounds next to the chart where there is space.
func (r *Report) bands(p plot) {
	systolic, diastolic := r.bounds.Limits(vitals.Systolic), r.bounds.Limits(vitals.Diastolic)
	band := func(from, to *float64, ink pdf.Ink) {
		if from != nil && to != nil && *to > *from {
			p.s.Fill(p.x, p.yAt(*to), p.w, p.yAt(*from)-p.yAt(*to), ink)
		}
	}
	lowest := systolic.Low
	if diastolic.High != nil && (lowest == nil || *diastolic.High > *lowest) {
		lowest = diastolic.High // below is the other band
	}
	band(lowest, systolic.High, pdf.InRange)
	band(diastolic.Low, diastolic.High, pdf.InRange2)
	var lines []chartLimit
	add := func(value *float64, text string, shape pdf.Shape, ink pdf.Ink, dashes ...float64) {
		if value != nil {
			lines = append(lines, chartLimit{*value, text + " " + vitals.FormatNumber(*value), shape, ink, dashes})
		}
	}
	add(systolic.Critical, "systolic", pdf.Triangle, pdf.Red, 1.6, 1)
	add(diastolic.Critical, "diastolic", pdf.Triangle, pdf.Red, 0.5, 0.9)
	add(systolic.High, "systolic", pdf.Diamond, pdf.Amber)
	add(diastolic.High, "diastolic", pdf.Diamond, pdf.Amber)
	drawLimits(p, lines)
}

// scale draws the value labels and the dates.
func (r *Report) scale(p plot) {
	for value := math.Ceil(p.low/20) * 20; value <= p.high; value += 20 {
		p.s.Text(p.x-2, p.yAt(value)+1, rightAligned(small), formatWhole(value))
	}
	r.dates(p)
}

// dates draws a vertical line with a date per week.
func (r *Report) dates(p plot) {
	every := 7
	if r.request.Days > 45 {
		every = 14
	} else if r.request.Days <= 10 {
		every = 1
	}
	for day := r.from; day.Before(p.to); day = day.AddDate(0, 0, every) {
		x := p.xAt(day)
		p.s.Rule(x, p.y, x, p.y+p.h, 0.15, pdf.LightGray)
		if x < p.x+p.w-6 {
			p.s.Text(x-1, p.y+p.h+3.8, small, day.Format("Jan 2"))
		}
	}
}

// line connects the readings of one pressure; a gap in the data is a gap in the line.
func (r *Report) line(p plot, points []Point, of *vitals.Parameter, ink pdf.Ink) {
	var before *Point
	for i := range points {
		point := &points[i]
		if point.Suspect {
			continue
		}
		if before != nil && daysBetween(before.At, point.At) <= gapDays {
			p.s.Rule(p.xAt(before.At), p.yAt(*before.Reading.Value(of)), p.xAt(point.At), p.yAt(*point.Reading.Value(of)), 0.3, ink)
		}
		before = point
	}
	for _, point := range points {
		x, y := p.xAt(point.At), p.yAt(*point.Reading.Value(of))
		switch outside := levelIn(*point.Reading.Value(of), r.boundsAt(of, point.Reading)); {
		case point.Suspect:
			p.s.Mark(pdf.Question, x, y, 1.2, ink)
		case outside == levelCritical:
			p.s.Mark(pdf.Triangle, x, y, 1.4, pdf.Red)
		case outside == levelWarning:
			p.s.Mark(pdf.Diamond, x, y, 1.2, pdf.Amber)
		case len(points) <= maxRings:
			p.s.Mark(pdf.Ring, x, y, 0.8, ink)
		}
	}
}

// spark draws a small line of one value, with its range.
func (r *Report) spark(s *pdf.Sheet, of *vitals.Parameter, x, y, width, height float64) {
	var points []Point
	low, high := math.Inf(1), math.Inf(-1)
	for _, point := range r.points {
		if value := point.Reading.Value(of); value != nil && !point.Suspect {
			points = append(points, point)
			low, high = min(low, *value), max(high, *value)
		}
	}
	if len(points) < 2 {
		return
	}
	limits := r.bounds.Limits(of)
	for _, bound := range []*float64{limits.Low, limits.High} {
		if bound != nil {
			low, high = min(low, *bound), max(high, *bound)
		}
	}
	room := max((high-low)*0.1, 0.5)
	p := plot{s: s, x: x, y: y - height, w: width, h: height, from: r.from, to: r.end.In(r.zone), low: low - room, high: high + room}
	p.scale = p.h / (p.high - p.low)
	if limits.Low != nil || limits.High != nil {
		top, bottom := p.y, p.y+p.h
		if limits.High != nil {
			top = p.yAt(*limits.High)
		}
		if limits.Low != nil {
			bottom = p.yAt(*limits.Low)
		}
		s.Fill(x, top, width, bottom-top, pdf.InRange)
	}
	for i := 1; i < len(points); i++ {
		before, point := points[i-1], points[i]
		if daysBetween(before.At, point.At) <= gapDays {
			s.Rule(p.xAt(before.At), p.yAt(*before.Reading.Value(of)), p.xAt(point.At), p.yAt(*point.Reading.Value(of)), 0.25, pdf.Teal)
		}
	}
}
