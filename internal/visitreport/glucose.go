package visitreport

import (
	"fmt"
	"math"

	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The glucose ranges and the goals for the share of readings in them. Source: ADA Standards of Care in Diabetes, section 6, and the international
// consensus on time in range (Battelino et al., Diabetes Care 42:1593, 2019). They are stated for continuous measurement; the report counts
// readings.
const (
	glucoseLow, glucoseVeryLow, glucoseHigh = 70.0, 54.0, 180.0
	goalInRange, goalLow, goalVeryLow       = 70.0, 4.0, 1.0
)

// glucoseShares are the shares of readings by range, in percent.
type glucoseShares struct {
	n                      int
	inRange, low, veryLow  float64
	high                   float64
	lowCount, veryLowCount int
}

func (r *Report) glucoseShares() (s glucoseShares) {
	inRange := 0
	for _, p := range r.since(vitals.BloodGlucose, r.from) {
		value := p.Reading.Value(vitals.GlucoseMgDL)
		if value == nil {
			continue
		}
		s.n++
		switch {
		case *value < glucoseLow:
			s.lowCount++
			if *value < glucoseVeryLow {
				s.veryLowCount++
			}
		case *value <= glucoseHigh:
			inRange++
		}
	}
	if s.n == 0 {
		return s
	}
	share := func(count int) float64 { return math.Round(1000*float64(count)/float64(s.n)) / 10 }
	s.inRange, s.low, s.veryLow, s.high = share(inRange), share(s.lowCount), share(s.veryLowCount), share(s.n-inRange-s.lowCount)
	return s
}

// glucoseControl states whether the readings meet the goals; low values come first.
func (r *Report) glucoseControl() string {
	s := r.glucoseShares()
	if s.n < minReadings {
		return ""
	}
	percent := func(value float64) string { return vitals.FormatNumber(value) + " %" }
	switch {
	case s.veryLow >= goalVeryLow:
		return fmt.Sprintf("Glucose uncontrolled: %s below 54, the goal is less than 1 %%.", percent(s.veryLow))
	case s.low >= goalLow:
		return fmt.Sprintf("Glucose uncontrolled: %s below 70, the goal is less than 4 %%.", percent(s.low))
	case s.inRange <= goalInRange:
		return fmt.Sprintf("Glucose uncontrolled: %s in 70–180, %s below the goal of more than 70 %%.", percent(s.inRange), points(goalInRange-s.inRange))
	}
	return fmt.Sprintf("Glucose controlled: %s in 70–180, %s above the goal of 70 %%.", percent(s.inRange), points(s.inRange-goalInRange))
}

func points(value float64) string {
	return vitals.FormatNumber(math.Round(value*10)/10) + " points"
}

// meals are the columns of the means by meal.
var meals = []struct{ context, title string }{
	{vitals.MealFasting, "Fasting"}, {vitals.MealBefore, "Before a meal"}, {vitals.MealAfter, "After a meal"}, {"bedtime", "Bedtime"}, {"", "Other"},
}

// glucoseTable lists the shares by range and the means by meal.
func (r *Report) glucoseTable(s *pdf.Sheet, y float64) float64 {
	shares := r.glucoseShares()
	bold := pdf.Type{Size: 8, Bold: true, Ink: pdf.Gray}
	const column = wide / 5
	row := func(title string, titles, values [5]string) {
		s.Text(left, y, bold, title)
		y += 4.6
		for i := range titles {
			s.Text(left+column*float64(i), y, bold, titles[i])
			s.Text(left+column*float64(i), y+4.8, strong, values[i])
		}
		y += 6.4
		s.Rule(left, y, right, y, 0.2, pdf.LightGray)
		y += 4.6
	}
	share := func(value float64) string { return vitals.FormatNumber(value) + " %" }
	count := func(value float64, n int) string { return fmt.Sprintf("%s (%d)", share(value), n) }
	row(fmt.Sprintf("Share of %d readings in %d days", shares.n, r.request.Days),
		[5]string{"In 70–180 mg/dL", "Below 70", "Below 54", "Above 180", "Mean"},
		[5]string{share(shares.inRange), count(shares.low, shares.lowCount), count(shares.veryLow, shares.veryLowCount), share(shares.high), r.glucoseMean(nil)})
	var titles, values [5]string
	for i, meal := range meals {
		titles[i], values[i] = meal.title, r.glucoseMean(&meal.context)
	}
	row("Mean by meal, mg/dL (readings)", titles, values)
	return y - 4.6
}

// glucoseMean returns the mean of the readings of a meal, or of all, with their number.
func (r *Report) glucoseMean(meal *string) string {
	sum, n := 0.0, 0
	for _, p := range r.since(vitals.BloodGlucose, r.from) {
		value, context := p.Reading.Value(vitals.GlucoseMgDL), p.Reading.Qualifier(vitals.MealContext)
		if context != vitals.MealFasting && context != vitals.MealBefore && context != vitals.MealAfter && context != "bedtime" {
			context = ""
		}
		if value != nil && (meal == nil || *meal == context) {
			sum, n = sum+*value, n+1
		}
	}
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%s (%d)", formatWhole(sum/float64(n)), n)
}
