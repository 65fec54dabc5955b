// Package pdf draws two kinds of PDF: a [Document] of headings, text and tables that flow over pages with headers, footers and page
// numbers, and a [Sheet] with freely placed elements. Their contents are up to the caller.
package pdf

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/text/unicode/norm"
)

// font covers Latin, Greek and Cyrillic letters. DejaVu fonts are free to embed (Bitstream Vera licence).
//
//go:embed DejaVuSansCondensed.ttf
var font []byte

const (
	family     = "dejavu"
	margin     = 12.0 // millimeters
	footerRoom = margin + 6
	lineHeight = 4.2
	cellSize   = 8.0 // points
	// cellPadding is the room beside a cell's text in millimeters, a little more than fpdf's own margin.
	cellPadding = 1.1
	maxLines    = 30 // of one cell
	footer      = "Confidential – contains PHI"
)

// Document is a PDF under construction.
type Document struct {
	pdf     *fpdf.Fpdf
	width   float64 // between the margins
	heading string  // not drawn yet: it shares the page of the next element
}

// New starts a landscape letter-size document with a title and a line about the period. The time is written in its own zone.
func New(title, period string, now time.Time) *Document {
	p := fpdf.New("L", "mm", "Letter", "")
	p.AddUTF8FontFromBytes(family, "", font)
	p.SetCreationDate(now)
	p.SetModificationDate(now)
	p.SetTitle(title, true)
	p.SetMargins(margin, margin, margin)
	p.SetAutoPageBreak(true, footerRoom)
	p.AliasNbPages("{pages}")
	p.SetFooterFunc(func() {
		p.SetY(-margin - 2)
		p.SetFont(family, "", 7)
		p.SetTextColor(90, 90, 90)
		width, _ := p.GetPageSize()
		p.CellFormat((width-2*margin)/2, 5, footer, "", 0, "L", false, 0, "")
		p.CellFormat((width-2*margin)/2, 5, fmt.Sprintf("Page %d of {pages}", p.PageNo()), "", 0, "R", false, 0, "")
	})
	p.AddPage()
	width, _ := p.GetPageSize()
	d := &Document{pdf: p, width: width - 2*margin}
	d.text(16, 8, title)
	d.text(10, 5, period)
	d.text(7, 4, "Made "+now.Format("2006-01-02 15:04 MST"))
	return d
}

func (d *Document) text(size, height float64, text string) {
	d.pdf.SetTextColor(0, 0, 0)
	d.pdf.SetFont(family, "", size)
	d.pdf.MultiCell(d.width, height, printable(text), "", "L", false)
}

// Heading starts a section. It is drawn with what follows it, on the same page.
func (d *Document) Heading(text string) { d.heading = text }

// begin starts a new page if the pending heading and an element of the height do not fit on this one, and draws the heading.
func (d *Document) begin(height float64) {
	const title, gap = 6.0, 3.0
	if d.heading != "" {
		height += title + gap
	}
	if d.pdf.GetY()+height > d.bottom() && d.pdf.GetY() > margin {
		d.pdf.AddPage()
	}
	if d.heading != "" {
		d.pdf.Ln(gap)
		d.text(11, title, d.heading)
		d.heading = ""
	}
}

// Paragraph writes running text.
func (d *Document) Paragraph(text string) {
	const line = 4.6
	d.begin(2 * line)
	d.text(9, line, text)
}

// Table writes rows below headings, which repeat on every page that has rows. Shares are the widths relative to each other; nil makes the columns
// equal. No column is narrower than the longest word of its heading. Long cells wrap between words, ids at their hyphens. An empty table writes "None.".
func (d *Document) Table(headings []string, shares []float64, rows [][]string) {
	if len(rows) == 0 {
		d.Paragraph("None.")
		return
	}
	widths := d.columns(headings, shares, rows)
	top := d.height(headings, widths)
	d.begin(top + d.height(rows[0], widths))
	d.row(headings, widths, true)
	for _, row := range rows {
		if d.pdf.GetY()+d.height(row, widths) > d.bottom() {
			d.pdf.AddPage()
			d.row(headings, widths, true)
		}
		d.row(row, widths, false)
	}
}

// columns returns the widths in millimeters, which together fill the page: with room for each word of the cells, or for its parts (see [parts]), or for the
// words of the headings: the first of them that fits.
func (d *Document) columns(headings []string, shares []float64, rows [][]string) []float64 {
	d.pdf.SetFont(family, "", cellSize)
	share, least := make([]float64, len(headings)), d.widest(make([]float64, len(headings)), headings, strings.Fields)
	for i := range headings {
		if share[i] = 1; i < len(shares) && shares[i] > 0 {
			share[i] = shares[i]
		}
	}
	for _, split := range []func(string) []string{strings.Fields, parts} {
		room, total := slices.Clone(least), 0.0
		for _, row := range rows {
			room = d.widest(room, row[:min(len(row), len(room))], split)
		}
		for _, width := range room {
			total += width
		}
		if total <= d.width {
			return distribute(d.width, share, room)
		}
	}
	return distribute(d.width, share, least)
}

// widest raises each width to the widest piece of a cell.
func (d *Document) widest(widths []float64, cells []string, split func(string) []string) []float64 {
	for i, text := range cells {
		for _, piece := range split(printable(text)) {
			widths[i] = max(widths[i], d.pdf.GetStringWidth(strings.TrimRight(piece, " "))+2*cellPadding)
		}
	}
	return widths
}

// instantPattern is the start of an instant.
var instantPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:`)

// parts splits a text where a line may end: after a blank, after the hyphens of an id, and before the clock time of an instant, so that neither its date
// nor its offset is torn.
func parts(text string) (list []string) {
	for _, word := range strings.SplitAfter(text, " ") {
		date, clock, _ := strings.Cut(word, "T")
		switch {
		case instantPattern.MatchString(word):
			list = append(list, date, "T"+clock)
		default:
			list = append(list, strings.SplitAfter(word, "-")...)
		}
	}
	return slices.DeleteFunc(list, func(part string) bool { return part == "" })
}

// distribute divides a width by shares, of which none gets less than its least; where the least do not fit, the shares alone count.
func distribute(width float64, share, least []float64) []float64 {
	widths := make([]float64, len(share))
	for fixed := make([]bool, len(share)); ; {
		left, total := width, 0.0
		for i := range share {
			if fixed[i] {
				left -= widths[i]
			} else {
				total += share[i]
			}
		}
		settled := true
		for i := range share {
			if fixed[i] {
				continue
			}
			if widths[i] = left * share[i] / total; widths[i] < least[i] {
				widths[i], fixed[i], settled = least[i], true, false
			}
		}
		switch {
		case settled && left >= 0:
			return widths
		case left < 0 || !slices.Contains(fixed, false):
			return distribute(width, share, make([]float64, len(share)))
		}
	}
}

func (d *Document) bottom() float64 {
	_, height := d.pdf.GetPageSize()
	return height - footerRoom
}

// cell returns the lines of a cell. Only a part that is wider than the cell breaks anywhere.
func (d *Document) cell(text string, width float64) (lines []string) {
	room := width - 2*cellPadding
	for paragraph := range strings.SplitSeq(printable(text), "\n") {
		line := ""
		for _, part := range parts(paragraph) {
			if line == "" || d.pdf.GetStringWidth(strings.TrimRight(line+part, " ")) <= room {
				line += part
				continue
			}
			lines, line = append(lines, d.split(line, width)...), part
		}
		lines = append(lines, d.split(line, width)...)
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines-1], "…")
	}
	return lines
}

// split breaks a line that is wider than a cell.
func (d *Document) split(line string, width float64) []string {
	if line = strings.TrimRight(line, " "); d.pdf.GetStringWidth(line) <= width-2*cellPadding {
		return []string{line}
	}
	return d.pdf.SplitText(line, width) // less fpdf's own margins
}

func (d *Document) height(row []string, widths []float64) float64 {
	d.pdf.SetFont(family, "", cellSize)
	most := 1
	for i, text := range row[:min(len(row), len(widths))] {
		most = max(most, len(d.cell(text, widths[i])))
	}
	return float64(most)*lineHeight + 1
}

func (d *Document) row(row []string, widths []float64, heading bool) {
	p, height := d.pdf, d.height(row, widths)
	p.SetAutoPageBreak(false, 0) // a row is one piece
	defer p.SetAutoPageBreak(true, footerRoom)
	x, y := p.GetX(), p.GetY()
	p.SetDrawColor(180, 180, 180)
	p.SetFillColor(232, 237, 242)
	p.SetTextColor(0, 0, 0)
	for i, width := range widths {
		style := "D"
		if heading {
			style = "FD"
		}
		p.Rect(x, y, width, height, style)
		if i < len(row) {
			for n, line := range d.cell(row[i], width) {
				p.SetXY(x, y+0.5+float64(n)*lineHeight)
				p.CellFormat(width, lineHeight, line, "", 0, "L", false, 0, "")
			}
		}
		x += width
	}
	p.SetXY(margin, y+height)
}

// Bytes finishes the document.
func (d *Document) Bytes() ([]byte, error) {
	var out bytes.Buffer
	if err := d.pdf.Output(&out); err != nil {
		return nil, fmt.Errorf("write PDF: %w", err)
	}
	return out.Bytes(), nil
}

// printable removes control characters and everything beyond the basic plane, which the font lacks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' && r != '\n', r > 0xFFFF:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

const (
	chartHeight = 48.0 // millimeters, without labels
	labelSize   = 7.0  // points
	widestBar   = 24.0 // millimeters
)

// Bars draws a bar for each amount in dollars, with its label below and the amount above; nothing without amounts. If bars are narrow, only
// some labels are written, and in the title the highest amount, so that texts do not overlap.
func (d *Document) Bars(title string, labels []string, amounts []float64) {
	if len(labels) == 0 || len(labels) != len(amounts) {
		return
	}
	p, most, widest := d.pdf, 0.0, 0.0
	p.SetFont(family, "", labelSize)
	for i, amount := range amounts {
		most, widest = max(most, amount), max(widest, p.GetStringWidth(printable(labels[i])), p.GetStringWidth(dollars(amount)))
	}
	step := d.width / float64(len(labels))
	every := int((widest+2)/step) + 1
	if every > 1 {
		title += " (highest: " + dollars(most) + ")"
	}
	d.Heading(title)
	d.begin(chartHeight + 12)
	p.SetFont(family, "", labelSize)
	base, bar := p.GetY()+5+chartHeight, min(step*0.7, widestBar)
	p.SetFillColor(66, 111, 156)
	p.SetDrawColor(120, 120, 120)
	for i, amount := range amounts {
		x, height := margin+float64(i)*step, 0.0
		if most > 0 {
			height = max(0, amount) / most * chartHeight
		}
		p.Rect(x+(step-bar)/2, base-height, bar, height, "F")
		switch {
		case every == 1:
			d.label(x, base-height-4, step, "C", dollars(amount))
			d.label(x, base+0.5, step, "C", labels[i])
		case i%every == 0 && x+widest < margin+d.width:
			d.label(x, base+0.5, widest+2, "L", labels[i])
		}
	}
	p.Line(margin, base, margin+d.width, base)
	p.SetXY(margin, base+6)
}

func (d *Document) label(x, y, width float64, align, text string) {
	d.pdf.SetXY(x, y)
	d.pdf.CellFormat(width, 4, printable(text), "", 0, align, false, 0, "")
}

// dollars formats an amount without cents.
func dollars(amount float64) string { return "$" + strconv.FormatFloat(amount, 'f', 0, 64) }

// missingGlyph replaces a letter that the font lacks or would set incorrectly. It is a box.
const missingGlyph = '□'

// printableText returns the text that the font can set, and whether a letter was replaced: one that the font lacks, or one of a script with
// joined, stacked or right-to-left letters, which fpdf does not shape. A missing name is safer than a wrong one.
func printableText(text string) (shown string, lost bool) {
	var b strings.Builder
	for _, r := range norm.NFC.String(strings.ToValidUTF8(text, "")) {
		switch {
		case r == '\t', unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case r == '\n':
			b.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		case r > 0xFFFF, needsShaping(r), !inFont(r):
			b.WriteRune(missingGlyph)
			lost = true
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), lost
}

// needsShaping reports letters that fpdf cannot set one after the other.
func needsShaping(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao,
		unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Mongolian) || unicode.Is(unicode.Mn, r)
}

// fontLetters reports which letters the font has; it is computed on first use.
var fontLetters = sync.OnceValue(func() []bool {
	has := make([]bool, 0x10000)
	parsed, err := sfnt.Parse(font)
	if err != nil {
		return slices.Repeat([]bool{true}, len(has)) // the font's own missing-glyph sign is drawn instead
	}
	var buffer sfnt.Buffer
	for r := range has {
		glyph, err := parsed.GlyphIndex(&buffer, rune(r))
		has[r] = err == nil && glyph != 0
	}
	return has
})

func inFont(r rune) bool { return fontLetters()[r] }
