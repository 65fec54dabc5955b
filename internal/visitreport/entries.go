package visitreport

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/pdf"
)

const (
	// maxLines bounds the lines of one text. The longest note, 5,000 characters, has fewer.
	maxLines = 120
	// maxPages bounds the sheet; the rest is in the chart.
	maxPages = 6

	stampWide, valueWide = 28.0, 24.0
	pageTop              = 18.0
)

// entries are the critical readings and notes that are not yet drawn. Each is drawn whole, in the first column of the first page or on a later
// page.
type entries struct {
	criticals []Critical
	notes     []Note
	page      int
}

func (e entries) isEmpty() bool { return len(e.criticals)+len(e.notes) == 0 || e.page >= maxPages }

// criticalsAndNotes draws what fits on the first page. Notes have room at least for the first of them.
func (r *Report) criticalsAndNotes(s *pdf.Sheet, y, width float64) (end float64, rest entries) {
	const bottom = visitTop - 9
	rest = entries{r.criticals, r.notes, 1}
	at := r.heading(s, left, y, width, "Critical readings and what was done", "")
	room := at + (bottom-at)*0.55
	if len(r.notes) == 0 {
		room = bottom
	}
	at = r.drawCriticals(s, at, room, width, &rest)
	at = r.remainder(s, at, len(rest.criticals), len(r.criticals), r.criticalsOmitted)
	at = r.heading(s, left, at+6.5, width, "Calls and notes", "")
	rest.notes, at = r.drawNotes(s, at, bottom, width, dayOnly, rest.notes)
	return r.remainder(s, at, len(rest.notes), len(r.notes), 0), rest
}

// remainder states how many entries follow on another page or are in the chart only.
func (r *Report) remainder(s *pdf.Sheet, y float64, following, all, omitted int) float64 {
	switch {
	case all+omitted == 0:
		s.Text(left, y+lineStep, small, "None in these days.")
		return y + lineStep
	case following > 0:
		s.Text(left, y+3.8, small, fmt.Sprintf("%d more on the next page.", following))
		return y + 3.8
	case omitted > 0:
		s.Text(left, y+3.8, small, fmt.Sprintf("%d more in the chart.", omitted))
		return y + 3.8
	}
	return y
}

// continued draws a further page of entries.
func (r *Report) continued(s *pdf.Sheet, rest *entries) {
	const bottom = footAt - 9
	rest.page++
	y := pageTop
	before := len(rest.criticals) + len(rest.notes)
	if len(rest.criticals) > 0 {
		y = r.heading(s, left, y, wide, "Critical readings and what was done, continued", "")
		y = r.drawCriticals(s, y, bottom, wide, rest) + 6.5
	}
	if len(rest.criticals) == 0 && len(rest.notes) > 0 {
		y = r.heading(s, left, y, wide, "Calls and notes, continued", "")
		rest.notes, _ = r.drawNotes(s, y, bottom, wide, dayOnly, rest.notes)
	}
	left := len(rest.criticals) + len(rest.notes)
	if left == before { // one entry is longer than a page
		rest.page = maxPages
	}
	if left > 0 && rest.page >= maxPages {
		s.Text(pdf.SheetMargin, bottom+3.8, small, fmt.Sprintf("%d more in the chart.", left+r.criticalsOmitted))
	}
}

// drawCriticals draws critical readings down to bottom and removes them from the rest.
func (r *Report) drawCriticals(s *pdf.Sheet, at, bottom, width float64, rest *entries) float64 {
	for len(rest.criticals) > 0 {
		c := rest.criticals[0]
		values := s.Lines(valueWide-1, maxLines, strong, c.Value)
		lines := s.Lines(width-stampWide-valueWide, maxLines, plain, c.Action.Reveal())
		if at+float64(max(len(lines), len(values)))*lineStep+1.8 > bottom {
			break
		}
		s.Text(left, at+lineStep, plain, formatStamp(c.At))
		s.Mark(pdf.Triangle, left+25.5, at+lineStep-1.1, 1.2, pdf.Red)
		for i, value := range values {
			s.Text(left+stampWide, at+lineStep*float64(i+1), strong, value)
		}
		after := r.paragraph(s, left+stampWide+valueWide, at, lines)
		at = max(after, at+lineStep*float64(len(values))+1.2)
		s.Rule(left, at+0.3, left+width, at+0.3, 0.15, pdf.LightGray)
		rest.criticals = rest.criticals[1:]
	}
	return at
}

// noteStamp is how the time of a note is written.
type noteStamp struct {
	wide   float64
	format func(time.Time) string
}

var (
	dayOnly  = noteStamp{17, func(at time.Time) string { return at.Format("Jan 2") }}
	dayAndAt = noteStamp{stampWide, formatStamp}
)

// drawNotes draws notes down to bottom and returns the rest, and where it ended.
func (r *Report) drawNotes(s *pdf.Sheet, at, bottom, width float64, stamp noteStamp, notes []Note) (rest []Note, end float64) {
	for len(notes) > 0 {
		n := notes[0]
		lines := s.Lines(width-stamp.wide, maxLines, plain, n.By+": "+n.Text.Reveal())
		if at+float64(len(lines))*lineStep+1.8 > bottom {
			break
		}
		s.Text(left, at+lineStep, plain, stamp.format(n.At))
		at = r.paragraph(s, left+stamp.wide, at, lines)
		s.Rule(left, at+0.3, left+width, at+0.3, 0.15, pdf.LightGray)
		notes = notes[1:]
	}
	return notes, at
}
