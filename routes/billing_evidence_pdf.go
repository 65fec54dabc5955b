package routes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/routes/web"
)

func (a *api) evidencePDF(c *web.Call, v entryView, e billing.Evidence, sections []section) error {
	d := pdf.New("Evidence for "+v.ClaimID, v.PeriodStart+" to "+v.PeriodEnd, c.Now.In(a.Zone))
	patient := a.viewBeneficiary(v, e)
	d.Paragraph(fmt.Sprintf("Patient %s, date of birth %s, MRN %s, member id %s.", patient.Name, orNotOnRecord(patient.DateOfBirth), orNotOnRecord(patient.MRN), orNotOnRecord(patient.MemberID)))
	d.Paragraph(fmt.Sprintf("Code %s, service date %s, %d unit(s), charge $%s, %s. Status %s.",
		v.CPTCode, v.ServiceDate, v.Units, v.Charge, v.Payer, strings.ReplaceAll(v.LifecycleStatus, "_", " ")))
	if v.TransmissionDays != nil {
		d.Paragraph(fmt.Sprintf("%d distinct days with data, counted in the patient's time zone, %s.", *v.TransmissionDays, patient.TimeZone))
	}
	if v.DurationMinutes > 0 {
		recorded := 0
		for _, t := range e.Time {
			recorded += t.Seconds
		}
		d.Paragraph(fmt.Sprintf("%d minutes are billed with this code. The time below lasts %d minutes in all, of which other codes may bill a part.", v.DurationMinutes, recorded/60))
	}
	a.writePeople(d, e)
	d.Paragraph(fmt.Sprintf("Times are in the practice's time zone, %s, with the same time in ISO 8601 and its offset from UTC below.", a.Zone))
	for _, s := range sections {
		d.Heading(s.title)
		titles, rows := s.merge(a.Zone)
		d.Table(titles, s.widths, rows)
	}
	d.Heading("Proof")
	d.Paragraph(fmt.Sprintf("Each row of the audit trail holds the hash of the one before. The chain ended at row %d with %s when this was made.", e.HeadID, e.HeadHash))
	return attachPDF(c, d, "evidence-"+v.ClaimID+".pdf")
}

// writePeople names the billing practice, the rendering and the supervising practitioner, and the
// author of the plan of care. Clinical staff work under the general supervision of the billing
// practitioner. Source: 42 CFR 410.26(b)(5).
func (a *api) writePeople(d *pdf.Document, e billing.Evidence) {
	practice := a.viewPractice()
	d.Paragraph(fmt.Sprintf("Billed by %s, NPI %s.", cmp.Or(practice.Name, "the practice"), orNotOnRecord(practice.NPI)))
	if v := viewRendering(e); v != nil {
		d.Paragraph(fmt.Sprintf("Rendered by %s, NPI %s, who is also the supervising practitioner (general supervision, 42 CFR 410.26).", v.Name, orNotOnRecord(v.NPI)))
	} else {
		d.Paragraph("No rendering and supervising practitioner is on record.")
	}
	if plan := e.PlanOfCare(); plan != nil {
		d.Paragraph(fmt.Sprintf("Plan of care of %s by %s, see the orders below.", plan.Dated(), e.Names[plan.AuthorID()]))
	} else {
		d.Paragraph("No plan of care is on record.")
	}
}

func orNotOnRecord(text *string) string {
	if text == nil {
		return "not on record"
	}
	return *text
}

// merged lists the columns that a PDF combines into one with this title, to make room for times.
var merged = []struct {
	title   string
	columns []string
}{
	{"from, to", []string{"started_at", "ended_at"}},
	{"kind", []string{"category", "activity", "contact_method", "source"}},
	{"who", []string{"person", "role", "credential", "author"}},
	{"attested", []string{"attested_by", "attested_at"}},
	{"set up", []string{"setup_completed_at", "setup_completed_by"}},
	{"acknowledged", []string{"acknowledged_by", "acknowledged_at"}},
	{"resolved", []string{"resolved_by", "resolved_at"}},
	{"recorded", []string{"recorded_at", "recorded_by"}},
}

// merge returns the titles and cells of the section in a PDF: adjacent columns that belong together are one.
func (s section) merge(zone *time.Location) (titles []string, rows [][]string) {
	spans := [][2]int{}
	for first := 0; first < len(s.columns); {
		title, end := heading(s.columns[first]), first+1
		for _, m := range merged {
			if last := first + len(m.columns); last <= len(s.columns) && slices.Equal(s.columns[first:last], m.columns) {
				title, end = m.title, last
			}
		}
		titles, spans = append(titles, title), append(spans, [2]int{first, end})
		first = end
	}
	for _, row := range s.rows {
		cells := make([]string, len(spans))
		for i, span := range spans {
			texts := web.Map(row[span[0]:span[1]], func(cell any) string { return cellText(cell, zone) })
			cells[i] = strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
		}
		rows = append(rows, cells)
	}
	return titles, rows
}

// heading renders a column name for a PDF.
func heading(column string) string { return strings.ReplaceAll(column, "_", " ") }

func attachPDF(c *web.Call, d *pdf.Document, filename string) error {
	out, err := d.Bytes()
	if err != nil {
		return err
	}
	return c.Attach("application/pdf", filename, out)
}

func cellText(cell any, zone *time.Location) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case moment:
		return momentText(string(v), zone)
	case *string:
		if v == nil {
			return ""
		}
		return *v
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case billing.Values:
		return v.Text()
	}
	return fmt.Sprint(cell)
}

// momentText writes a stored instant in the zone, and below it in ISO 8601 with the offset.
func momentText(stored string, zone *time.Location) string {
	at := collections.ParseInstant(stored)
	if at.IsZero() {
		return ""
	}
	at = at.In(zone)
	return at.Format("Jan 2, 2006, 3:04 PM MST") + "\n" + at.Format("2006-01-02T15:04:05-07:00")
}
