package pdf

import "strconv"

const (
	chartHeight = 48.0 // millimetres, labels not counted
	labelSize   = 7.0  // points
	widestBar   = 24.0 // millimetres
)

// Bars draws a bar for each amount in dollars, as high as it is great, with its label below and the amount above; nothing for none. Where bars are
// narrow, only some labels are written, and the highest amount instead of all, so that they do not run into each other.
func (d *Document) Bars(title string, labels []string, amounts []float64) {
	if len(labels) == 0 || len(labels) != len(amounts) {
		return
	}
	p, most, widest := d.pdf, 0.0, 0.0
	p.SetFont(family, "", labelSize)
	for i, amount := range amounts {
		most, widest = max(most, amount), max(widest, p.GetStringWidth(printable(labels[i])), p.GetStringWidth(dollars(amount)))
	}
	if p.GetY()+chartHeight+24 > d.bottom() {
		p.AddPage()
	}
	step := d.width / float64(len(labels))
	every := int((widest+2)/step) + 1
	if every > 1 {
		title += " (highest: " + dollars(most) + ")"
	}
	d.Heading(title)
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

// dollars is an amount without cents, with its sign of currency.
func dollars(amount float64) string { return "$" + strconv.FormatFloat(amount, 'f', 0, 64) }
