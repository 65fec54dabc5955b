package visitreport

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Positions and sizes in millimeters.
const (
	left     = pdf.SheetMargin
	right    = pdf.SheetWidth - pdf.SheetMargin
	wide     = right - left
	footAt   = pdf.SheetHeight - 11
	visitTop = footAt - 32 // start of the lines for notes at the visit
	gutter   = 7.0
	lineStep = 4.3
)

var (
	plain  = pdf.Type{Size: 9, Ink: pdf.Black}
	strong = pdf.Type{Size: 9, Bold: true, Ink: pdf.Black}
	small  = pdf.Type{Size: 7.6, Ink: pdf.Gray}
	head   = pdf.Type{Size: 10.5, Bold: true, Ink: pdf.Black}
)

func rightAligned(t pdf.Type) pdf.Type {
	t.Right = true
	return t
}

func (r *Report) PDF() ([]byte, error) {
	s := pdf.NewSheet("Home monitoring report", r.now, r.foot)
	y := r.top(s)
	y = r.patientBlock(s, y)
	y = r.drawOverview(s, y)
	subject := r.subject()
	y = r.kindChart(s, subject, y+6.5, chartTall)
	if subject == vitals.BloodGlucose {
		y = r.glucoseTable(s, y+5.5)
	}
	if _, measured := r.pressure(MaxDays); measured || subject == vitals.BloodPressure {
		y = r.table(s, y+5.5)
	}
	y, rest := r.twoColumns(s, y+6)
	if second, ok := r.secondChart(subject); ok && y+secondTall+22 < visitTop {
		y = r.kindChart(s, second, y+8, secondTall)
	}
	r.visitNotes(s, min(y+7, visitTop))
	for !rest.isEmpty() {
		s.AddPage()
		r.continued(s, &rest)
	}
	r.escalationPages(s)
	return s.Bytes()
}

func (r *Report) top(s *pdf.Sheet) (y float64) {
	s.Text(left, 18, pdf.Type{Size: 15, Bold: true, Ink: pdf.Black}, "Home monitoring report")
	until := r.end.In(r.zone)
	first := "Jan 2"
	if r.from.Year() != until.Year() {
		first = "Jan 2, 2006"
	}
	period := r.from.Format(first) + " to " + until.Format("Jan 2, 2006")
	if r.escalation != nil {
		period += ", about the escalation of " + r.escalation.CreatedAt().In(r.zone).Format("Jan 2, 15:04")
	}
	if r.provider != "" {
		period += ", for " + r.provider.Reveal()
	}
	s.TruncatedText(left, 23, wide*0.62, pdf.Type{Size: 9.5, Ink: pdf.Gray}, period)
	s.Text(right, 17.5, pdf.Type{Size: 10, Bold: true, Ink: pdf.Black, Right: true}, r.practice.Name)
	s.Text(right, 22, rightAligned(small), r.practice.Letterhead)
	s.Rule(left, 26, right, 26, 0.4, pdf.Black)
	return 26
}

// patientBlock identifies the patient, the devices and the excluded readings.
func (r *Report) patientBlock(s *pdf.Sheet, y float64) float64 {
	person := r.patient.Demographics()
	born := "Born not recorded"
	if at, err := time.Parse(time.DateOnly, person.DateOfBirth); err == nil {
		born = "Born " + at.Format("Jan 2, 2006")
		if r.hasAge {
			born += fmt.Sprintf(", %d", r.age)
		}
	}
	if gender := r.patient.Gender(); gender != "" && gender != "unknown" {
		born += ", " + gender
	}
	phone := "No phone recorded"
	if person.Phone != "" {
		phone = person.Phone
	}
	codes := "No diagnosis recorded"
	if list := r.patient.ICD10Codes(); len(list) > 0 {
		codes = strings.Join(list, ", ")
	}
	const second, third = left + 74, left + 118
	s.TruncatedText(left, y+6, 72, pdf.Type{Size: 11.5, Bold: true, Ink: pdf.Black}, person.FirstName+" "+person.LastName)
	s.TruncatedText(left, y+11, 72, plain, born)
	s.TruncatedText(left, y+15.5, 72, plain, codes)
	s.TruncatedText(second, y+6, 42, plain, r.mrn())
	s.TruncatedText(second, y+11, 42, plain, phone)
	s.TruncatedText(second, y+15.5, 42, plain, r.zoneLabel()+r.end.In(r.zone).Format("MST"))
	s.TruncatedText(third, y+6, right-third, plain, r.equipment())
	s.TruncatedText(third, y+11, right-third, plain, r.coverage())
	s.TruncatedText(third, y+15.5, right-third, plain, r.excludedText())
	s.Rule(left, y+18.5, right, y+18.5, 0.2, pdf.LightGray)
	return y + 18.5
}

// mrn labels the MRN, unless it starts with "MRN".
func (r *Report) mrn() string {
	if number := r.patient.MRN(); strings.HasPrefix(strings.ToUpper(number), "MRN") {
		return number
	}
	return "MRN " + r.patient.MRN()
}

func (r *Report) zoneLabel() string {
	if r.isOfPeriod() {
		return "Times: practice's, "
	}
	return "Times: patient's, "
}

func (r *Report) equipment() string {
	var list []string
	for _, device := range r.devices {
		name := device.DeviceID()
		if len(r.devices) < 3 { // with more, only the ids fit
			name = strings.ReplaceAll(device.Type(), "_", " ") + " " + name
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		return "No device assigned"
	}
	return "Devices: " + strings.Join(list, ", ")
}

func (r *Report) coverage() string {
	text := fmt.Sprintf("Readings on %d of %d days", r.days, r.request.Days)
	if r.typed == 0 {
		return text + ", none typed"
	}
	return text + fmt.Sprintf(", %d typed by hand", r.typed)
}

func (r *Report) excludedText() string {
	return fmt.Sprintf("Left out: %d suspect, %d withdrawn, %d implausible", r.excluded.Suspect, r.excluded.Retracted, r.excluded.Implausible)
}

// drawOverview draws the summary.
func (r *Report) drawOverview(s *pdf.Sheet, y float64) float64 {
	f := r.overview()
	y += 3.5
	lines := s.Lines(wide-9, maxLines, plain, f.Text)
	height := 7.5 + float64(len(lines))*lineStep
	s.Frame(left, y, wide, height, 0.4, pdf.Black)
	x := left + 4.0
	if f.Urgent {
		s.Mark(pdf.Triangle, x+1.5, y+4.6, 1.5, pdf.Black)
		x += 5
	}
	s.Text(x, y+5.7, pdf.Type{Size: 10.5, Bold: true, Ink: pdf.Black}, f.Headline)
	for i, line := range lines {
		s.Text(left+4, y+10.2+float64(i)*lineStep, plain, line)
	}
	return y + height
}

func (r *Report) heading(s *pdf.Sheet, x, y, width float64, text, more string) float64 {
	end := s.Text(x, y, head, text)
	s.Text(end+2, y, small, more)
	s.Rule(x, y+1.6, x+width, y+1.6, 0.3, pdf.Black)
	return y + 1.6
}

// table lists the means of each period and the share of readings in range.
func (r *Report) table(s *pdf.Sheet, y float64) float64 {
	columns := []float64{left + 37, left + 64, left + 91, left + 109, left + 122}
	const bar, barWidth = left + 129.0, 32.0
	bold := pdf.Type{Size: 8, Bold: true, Ink: pdf.Gray}
	s.Text(left, y, bold, "Mean BP of")
	for i, title := range []string{"All day", "Morning 4–12", "Evening 16–24", "Readings", "Days"} {
		s.Text(columns[i], y, rightAligned(bold), title)
	}
	s.Text(bar, y, bold, "In range; hatched: not")
	s.Text(right, y, rightAligned(bold), "Pulse")
	s.Rule(left, y+1.6, right, y+1.6, 0.2, pdf.LightGray)
	for i, period := range r.summary.Periods {
		label := fmt.Sprintf("%d days", period.Days)
		if r.isOfPeriod() {
			if label = "Last " + label; i == len(r.summary.Periods)-1 {
				label = "All days"
			} else if period.Days >= r.request.Days-1 {
				continue
			}
		}
		y += 5.6
		g, _ := r.pressure(period.Days)
		s.Text(left, y, strong, label)
		s.Text(columns[0], y, rightAligned(strong), bothMeans(g.All))
		s.Text(columns[1], y, rightAligned(plain), bothMeans(g.Morning))
		s.Text(columns[2], y, rightAligned(plain), bothMeans(g.Evening))
		s.Text(columns[3], y, rightAligned(plain), fmt.Sprint(g.Readings))
		s.Text(columns[4], y, rightAligned(plain), fmt.Sprint(g.Days))
		if systolic, diastolic := g.All.Mean(vitals.Systolic), g.All.Mean(vitals.Diastolic); systolic != nil && diastolic != nil {
			outside := max(levelIn(*systolic, r.bounds.Limits(vitals.Systolic)), levelIn(*diastolic, r.bounds.Limits(vitals.Diastolic)))
			r.sign(s, outside, columns[0]-15, y-1.1)
		}
		if g.InRange != nil {
			share := barWidth * *g.InRange / 100
			s.Fill(bar, y-2.7, share, 3, pdf.Ink{142, 186, 190})
			s.Hatch(bar+share, y-2.7, barWidth-share, 3, pdf.Amber)
			s.Text(bar+barWidth+2, y, plain, formatWhole(*g.InRange)+" %")
		} else {
			s.Text(bar, y, plain, "–")
		}
		s.Text(right, y, rightAligned(plain), r.pulse(period.Days))
		s.Rule(left, y+1.6, right, y+1.6, 0.2, pdf.LightGray)
	}
	return y + 1.6
}

func (r *Report) pulse(days int) string {
	g, ok := r.group(days, vitals.Pulse.Group)
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%s, %s–%s", formatWhole(*g.All.Mean(vitals.Pulse)), formatWhole(*g.All.Min(vitals.Pulse)), formatWhole(*g.All.Max(vitals.Pulse)))
}

// sign draws the shape of a level; nothing if in range.
func (r *Report) sign(s *pdf.Sheet, l level, x, y float64) {
	switch l {
	case levelCritical:
		s.Mark(pdf.Triangle, x, y, 1.3, pdf.Red)
	case levelWarning:
		s.Mark(pdf.Diamond, x, y, 1.4, pdf.Amber)
	}
}

// twoColumns draws critical readings and notes on the left, other readings on the right. It returns where the longer one ends, and what needs
// another page.
func (r *Report) twoColumns(s *pdf.Sheet, y float64) (end float64, rest entries) {
	half := (wide - gutter) * 0.55
	end, rest = r.criticalsAndNotes(s, y, half)
	return max(end, r.otherReadings(s, left+half+gutter, y, wide-half-gutter)), rest
}

func (r *Report) paragraph(s *pdf.Sheet, x, y float64, lines []string) float64 {
	for _, line := range lines {
		y += lineStep
		s.Text(x, y, plain, line)
	}
	return y + 1.2
}

func (r *Report) otherReadings(s *pdf.Sheet, x, y, width float64) (end float64) {
	y = r.heading(s, x, y, width, "Other readings", r.otherReadingsMean())
	found := false
	for _, p := range vitals.ThresholdParameters {
		if p == vitals.Systolic || p == vitals.Diastolic {
			continue
		}
		last := r.last(p)
		if last == nil {
			continue
		}
		found = true
		y += 5.2
		value := *last.Reading.Value(p)
		s.Text(x, y, plain, subscript(p.Label))
		r.sign(s, levelIn(value, r.boundsAt(p, last.Reading)), x+18.5, y-1.1)
		s.Text(x+39, y, rightAligned(strong), last.Reading.Qualifier(vitals.Comparator)+r.request.Units.value(p, value))
		s.Text(x+40.5, y, small, last.At.Format("Jan 2"))
		r.spark(s, p, x+50, y+0.9, 13, 3.8)
		s.Text(x+width, y, rightAligned(plain), r.meanOf(p))
		s.Rule(x, y+1.6, x+width, y+1.6, 0.15, pdf.LightGray)
	}
	if !found {
		y += lineStep
		s.Text(x, y, small, "None.")
	}
	return r.weightLimits(s, x, r.limits(s, x, y+7, width), width)
}

func subscript(label string) string { return strings.ReplaceAll(label, "SpO2", "SpO₂") }

func (r *Report) closestPeriod() int {
	if r.isOfPeriod() {
		return MaxDays
	}
	for _, period := range r.summary.Periods {
		if period.Days >= r.request.Days {
			return period.Days
		}
	}
	return MaxDays
}

func (r *Report) meanOf(p *vitals.Parameter) string {
	if target := r.bounds.Change(p).Target; target != nil {
		return "target " + r.request.Units.number(p, *target)
	}
	if g, ok := r.group(r.closestPeriod(), p.Group); ok && g.All.Mean(p) != nil {
		return "mean " + r.request.Units.number(p, *g.All.Mean(p))
	}
	return ""
}

// limits lists the bounds in force of the measured parameters, and always of blood pressure.
func (r *Report) limits(s *pdf.Sheet, x, y, width float64) (end float64) {
	y = r.heading(s, x, y, width, "Limits in force", "") + 4.4
	columns := []float64{x + width*0.43, x + width*0.62, x + width*0.81, x + width}
	for i, title := range []string{"▲ low", "◆ low", "◆ high", "▲ high"} {
		s.Text(columns[i], y, rightAligned(pdf.Type{Size: 7.6, Bold: true, Ink: pdf.Gray}), title)
	}
	any := false
	for _, p := range vitals.ThresholdParameters {
		l := r.bounds.Limits(p)
		if l == (vitals.Limits{}) || p.Group != vitals.Systolic.Group && r.last(p) == nil {
			continue
		}
		any = true
		y += 4.5
		s.Text(x, y, plain, subscript(p.Label)+", "+r.request.Units.unit(p))
		for i, bound := range []*float64{l.CriticalLow, l.Low, l.High, l.Critical} {
			text := "–"
			if bound != nil {
				text = r.request.Units.number(p, *bound)
			}
			s.Text(columns[i], y, rightAligned(plain), text)
		}
		if l.FastingHigh != nil {
			y += 4.5
			s.Text(x, y, plain, subscript(p.Label)+", fasting")
			s.Text(columns[2], y, rightAligned(plain), r.request.Units.number(p, *l.FastingHigh))
		}
	}
	if !any {
		y += 4.8
		s.Text(x, y, plain, "No bounds are in force.")
	}
	return y
}

// weightLimits states the limits of changes of the weight, which is measured.
func (r *Report) weightLimits(s *pdf.Sheet, x, y, width float64) (end float64) {
	p := vitals.WeightKg
	rule, units := r.bounds.Change(p), r.request.Units
	if r.last(p) == nil {
		return y
	}
	var words []string
	add := func(bound *float64, format string) {
		if bound != nil {
			words = append(words, fmt.Sprintf(format, vitals.FormatNumber(units.limitOfChange(*bound))))
		}
	}
	add(rule.Daily, "gain of %s in 1 day")
	add(rule.Change, "change of %s in "+fmt.Sprint(rule.WindowDays)+" days")
	add(rule.CriticalChange, "critical gain of %s")
	if rule.Target != nil {
		words = append(words, "target "+units.number(p, *rule.Target))
		add(rule.Over, "%s over target")
	} else {
		words = append(words, "no target")
	}
	return r.paragraph(s, x, y+0.6, s.Lines(width, maxLines, plain, "Weight, "+units.unit(p)+": "+strings.Join(words, "; ")+"."))
}

// visitNotes draws empty lines for notes at the visit in the rest of the page.
func (r *Report) visitNotes(s *pdf.Sheet, y float64) {
	y = r.heading(s, left, y, wide, "At the visit", "")
	for y += 7.4; y < footAt-4.5; y += 7.4 {
		s.Rule(left, y, right, y, 0.2, pdf.Gray)
	}
	if s.HasMissingGlyphs() {
		s.Text(left, footAt-5, small, "□ replaces letters that this font does not have: full names are in the chart, under the MRN.")
	}
}

func (r *Report) foot(s *pdf.Sheet, page int) {
	person := r.patient.Demographics()
	s.Rule(left, footAt-2.8, right, footAt-2.8, 0.2, pdf.LightGray)
	s.TruncatedText(left, footAt+0.8, wide-20, small, person.FirstName+" "+person.LastName+" · "+r.mrn()+" · born "+cmp.Or(person.DateOfBirth, "not recorded"))
	s.Text(right-14.5, footAt+0.8, small, fmt.Sprintf("Page %d of {pages}", page))
	s.TruncatedText(left, footAt+4.2, wide, small, "Made "+r.now.In(r.zone).Format("Jan 2, 2006 15:04 MST")+" by "+r.request.MadeBy.Reveal()+". Home readings, not a diagnosis.")
}
