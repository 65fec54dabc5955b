package visitreport

import (
	"math"
	"time"

	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// kindChart draws the chart of a kind: both pressures, or its main parameter with its limits.
func (r *Report) kindChart(s *pdf.Sheet, kind vitals.Kind, y, tall float64) float64 {
	if kind == vitals.BloodPressure {
		return r.chart(s, y, tall)
	}
	return r.parameterChart(s, kind.Definition().Main(), y, tall)
}

// chartLimit is a horizontal line with its label.
type chartLimit struct {
	value  float64
	text   string
	shape  pdf.Shape
	ink    pdf.Ink
	dashes []float64
}

// parameterChart draws one parameter with its limits; a weight with its target and the limit over it.
func (r *Report) parameterChart(s *pdf.Sheet, of *vitals.Parameter, y, tall float64) float64 {
	units := r.request.Units
	y = r.heading(s, left, y, wide, subscript(of.Label)+", "+units.unit(of), "")
	var points []Point
	for _, p := range r.points {
		if p.Reading.Value(of) != nil {
			points = append(points, p)
		}
	}
	p := plot{s: s, x: left + scaleWide, y: y + 3, w: wide - scaleWide - labelsWide, h: tall, from: r.from, to: r.end.In(r.zone).Add(12 * time.Hour)}
	p.low, p.high = math.Inf(1), math.Inf(-1)
	take := func(value float64) { p.low, p.high = min(p.low, value), max(p.high, value) }
	for _, point := range points {
		take(*point.Reading.Value(of))
	}
	limits := r.bounds.Limits(of)
	for _, bound := range []*float64{limits.Low, limits.High} {
		if bound != nil {
			take(*bound)
		}
	}
	lines := r.chartLimits(of)
	if of.Change != nil {
		for _, l := range lines {
			take(l.value)
		}
	}
	step := niceStep(p.high - p.low)
	p.low, p.high = math.Floor(p.low/step)*step-step/2, math.Ceil(p.high/step)*step+step/2
	p.scale = p.h / (p.high - p.low)
	if limits.Low != nil || limits.High != nil {
		from, to := p.low, p.high
		if limits.Low != nil {
			from = *limits.Low
		}
		if limits.High != nil {
			to = *limits.High
		}
		if to > from {
			s.Fill(p.x, p.yAt(to), p.w, p.yAt(from)-p.yAt(to), pdf.InRange)
		}
	}
	drawLimits(p, lines)
	for value := math.Ceil(p.low/step) * step; value <= p.high; value += step {
		s.Text(p.x-2, p.yAt(value)+1, rightAligned(small), units.number(of, math.Round(value*10)/10))
	}
	r.dates(p)
	r.line(p, points, of, pdf.Teal)
	y = p.y + p.h + 8
	s.Text(left, y, small, "Shaded is in range; ◆ is at or beyond the warning limit, ▲ the critical one; ? is suspect and not counted. The line breaks after two days without a reading.")
	return y
}

// chartLimits are the limits of a parameter that a chart labels.
func (r *Report) chartLimits(of *vitals.Parameter) (lines []chartLimit) {
	number := func(value float64) string { return r.request.Units.number(of, math.Round(value*10)/10) }
	if rule := r.bounds.Change(of); of.Change != nil {
		if rule.Target != nil {
			lines = append(lines, chartLimit{*rule.Target, "target " + number(*rule.Target), pdf.Ring, pdf.Teal, []float64{1.6, 1}})
			if rule.Over != nil {
				lines = append(lines, chartLimit{*rule.Target + *rule.Over, "limit " + number(*rule.Target+*rule.Over), pdf.Diamond, pdf.Amber, nil})
			}
		}
		return lines
	}
	limits := r.bounds.Limits(of)
	for _, l := range []struct {
		value *float64
		shape pdf.Shape
		ink   pdf.Ink
		dash  []float64
	}{
		{limits.Critical, pdf.Triangle, pdf.Red, []float64{1.6, 1}},
		{limits.CriticalLow, pdf.Triangle, pdf.Red, []float64{1.6, 1}},
		{limits.High, pdf.Diamond, pdf.Amber, nil},
		{limits.Low, pdf.Diamond, pdf.Amber, nil},
	} {
		if l.value != nil {
			lines = append(lines, chartLimit{*l.value, number(*l.value), l.shape, l.ink, l.dash})
		}
	}
	return lines
}

// drawLimits draws the lines within the chart, and the labels that have room beside it.
func drawLimits(p plot, lines []chartLimit) {
	var labeled []float64
	for _, l := range lines {
		if l.value < p.low || l.value > p.high {
			continue
		}
		y := p.yAt(l.value)
		ink := pdf.LightGray
		if l.dashes != nil {
			ink = l.ink
		}
		p.s.Rule(p.x, y, p.x+p.w, y, 0.25, ink, l.dashes...)
		if isNear(labeled, y) {
			continue
		}
		labeled = append(labeled, y)
		p.s.Mark(l.shape, p.x+p.w+3, y, 1.2, l.ink)
		p.s.Text(p.x+p.w+5.5, y+1, pdf.Type{Size: 7.6, Ink: l.ink}, l.text)
	}
}

// isNear reports whether a label would touch another.
func isNear(labeled []float64, y float64) bool {
	for _, other := range labeled {
		if math.Abs(other-y) < 3.2 {
			return true
		}
	}
	return false
}

// niceStep returns the distance of the labels of a scale: about five of them.
func niceStep(span float64) float64 {
	if span <= 0 || math.IsInf(span, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, factor := range []float64{1, 2, 5} {
		if span/5 <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}
