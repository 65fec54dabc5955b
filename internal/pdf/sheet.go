package pdf

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// The size of a sheet in millimeters: US Letter, portrait.
const (
	SheetWidth  = 215.9
	SheetHeight = 279.4
	SheetMargin = 13.0
	point       = 0.352778 // millimeters
)

// Ink is an RGB color. In grayscale, shapes and hatches distinguish inks.
type Ink [3]int

// The inks of a sheet.
var (
	Black     = Ink{16, 24, 28}
	Gray      = Ink{70, 84, 92}
	LightGray = Ink{200, 207, 211}
	Teal      = Ink{15, 92, 99}
	Violet    = Ink{90, 75, 176}
	Amber     = Ink{122, 75, 0}
	Red       = Ink{168, 23, 31}
	White     = Ink{255, 255, 255}
	InRange   = Ink{226, 239, 240} // ranges of normal values
	InRange2  = Ink{234, 231, 246}
)

// Sheet is a portrait page with freely placed elements. Bold text is the regular font drawn with an outline.
type Sheet struct {
	pdf           *fpdf.Fpdf
	missingGlyphs bool
}

// NewSheet starts a sheet. foot is drawn on every page with its number; "{pages}" stands for their count.
func NewSheet(title string, now time.Time, foot func(s *Sheet, page int)) *Sheet {
	p := fpdf.New("P", "mm", "Letter", "")
	p.AddUTF8FontFromBytes(family, "", font)
	p.SetCreationDate(now)
	p.SetModificationDate(now)
	p.SetTitle(title, true)
	p.SetLang("en")
	p.SetMargins(SheetMargin, SheetMargin, SheetMargin)
	p.SetAutoPageBreak(false, 0)
	p.AliasNbPages("{pages}")
	s := &Sheet{pdf: p}
	p.SetFooterFunc(func() { foot(s, p.PageNo()) })
	p.AddPage()
	return s
}

// AddPage starts another page; its top is below the margin.
func (s *Sheet) AddPage() { s.pdf.AddPage() }

// HasMissingGlyphs reports whether letters were replaced by boxes.
func (s *Sheet) HasMissingGlyphs() bool { return s.missingGlyphs }

// Type is the style of a text.
type Type struct {
	Size  float64 // points
	Bold  bool
	Ink   Ink
	Right bool // right-aligned
}

func (s *Sheet) set(t Type) {
	p := s.pdf
	p.SetFont(family, "", t.Size)
	p.SetTextColor(t.Ink[0], t.Ink[1], t.Ink[2])
	p.SetTextRenderingMode(0)
	if t.Bold {
		p.SetTextRenderingMode(2)
		p.SetLineWidth(t.Size * point * 0.028)
		p.SetDrawColor(t.Ink[0], t.Ink[1], t.Ink[2])
	}
}

// Text writes a line with its baseline at y and returns its end.
func (s *Sheet) Text(x, y float64, t Type, text string) float64 {
	shown := s.printable(text)
	s.set(t)
	width := s.pdf.GetStringWidth(shown)
	if t.Right {
		x -= width
	}
	if shown != "" {
		s.pdf.Text(x, y, shown)
	}
	s.pdf.SetTextRenderingMode(0)
	return x + width
}

// TruncatedText writes a line no wider than width, shortened with an ellipsis.
func (s *Sheet) TruncatedText(x, y, width float64, t Type, text string) float64 {
	s.set(t)
	runes := []rune(s.printable(text))
	if s.pdf.GetStringWidth(string(runes)) > width {
		for len(runes) > 0 && s.pdf.GetStringWidth(string(runes)+"…") > width {
			runes = runes[:len(runes)-1]
		}
		runes = append(runes, '…')
	}
	return s.Text(x, y, t, string(runes))
}

// Lines breaks a text into at most most lines no wider than width; the last one ends with an ellipsis if text was cut.
func (s *Sheet) Lines(width float64, most int, t Type, text string) []string {
	s.set(t)
	s.pdf.SetTextRenderingMode(0)
	lines := s.pdf.SplitText(s.printable(text), width)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = strings.TrimRight(lines[most-1], " .,;") + " …"
	}
	return lines
}

// Rule draws a line; dashes are lengths of dashes and gaps.
func (s *Sheet) Rule(x1, y1, x2, y2, weight float64, ink Ink, dashes ...float64) {
	s.pen(weight, ink)
	s.pdf.SetDashPattern(dashes, 0)
	s.pdf.Line(x1, y1, x2, y2)
	s.pdf.SetDashPattern(nil, 0)
}

func (s *Sheet) pen(weight float64, ink Ink) {
	s.pdf.SetLineWidth(weight)
	s.pdf.SetDrawColor(ink[0], ink[1], ink[2])
}

// Fill paints a rectangle.
func (s *Sheet) Fill(x, y, width, height float64, ink Ink) {
	s.pdf.SetFillColor(ink[0], ink[1], ink[2])
	s.pdf.Rect(x, y, width, height, "F")
}

// Frame draws a rounded frame.
func (s *Sheet) Frame(x, y, width, height, weight float64, ink Ink) {
	s.pen(weight, ink)
	s.pdf.RoundedRect(x, y, width, height, 1.6, "1234", "D")
}

// Hatch fills a rectangle with diagonal lines, which differ from a tint in grayscale.
func (s *Sheet) Hatch(x, y, width, height float64, ink Ink) {
	s.pdf.ClipRect(x, y, width, height, false)
	s.pen(0.5, ink)
	for at := x - height; at < x+width; at += 1.5 {
		s.pdf.Line(at, y+height, at+height, y)
	}
	s.pdf.ClipEnd()
	s.pen(0.2, ink)
	s.pdf.Rect(x, y, width, height, "D")
}

// Shape is a marker with a meaning.
type Shape string

// The shapes: critical, warning, in range, suspect.
const (
	Triangle Shape = "triangle"
	Diamond  Shape = "diamond"
	Ring     Shape = "ring"
	Question Shape = "question"
)

// Mark draws a shape around a point.
func (s *Sheet) Mark(shape Shape, x, y, r float64, ink Ink) {
	p := s.pdf
	p.SetFillColor(ink[0], ink[1], ink[2])
	switch shape {
	case Triangle:
		p.Polygon([]fpdf.PointType{{X: x, Y: y - r*1.1}, {X: x + r*1.1, Y: y + r*0.9}, {X: x - r*1.1, Y: y + r*0.9}}, "F")
	case Diamond:
		p.Polygon([]fpdf.PointType{{X: x, Y: y - r*1.1}, {X: x + r*1.1, Y: y}, {X: x, Y: y + r*1.1}, {X: x - r*1.1, Y: y}}, "F")
	case Question:
		s.Text(x-r*0.7, y+r*0.9, Type{Size: r * 7, Bold: true, Ink: ink}, "?")
	default:
		s.pen(r*0.5, ink)
		p.SetFillColor(255, 255, 255)
		p.Circle(x, y, r*0.8, "FD")
	}
}

// Bytes finishes the sheet.
func (s *Sheet) Bytes() ([]byte, error) {
	var out bytes.Buffer
	if err := s.pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("write PDF: %w", err)
	}
	return out.Bytes(), nil
}

// printable returns the text that the font can set, and records replaced letters.
func (s *Sheet) printable(text string) string {
	shown, lost := printableText(text)
	s.missingGlyphs = s.missingGlyphs || lost
	return shown
}
