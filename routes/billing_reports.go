package routes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/pdf"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

func (a *api) readBillingStats(c *web.Call) error {
	q := c.Query()
	month := a.monthIn(c, q, "period")
	if err := q.Err(); err != nil {
		return err
	}
	return c.Respond(a.Reports.MonthStatistics(c.App, month))
}

func (a *api) readBillingBreakdown(c *web.Call) error {
	q := c.Query()
	for _, name := range []string{"date_from", "date_to"} {
		if !q.Has(name) {
			q.Reject(name, "This field is required.")
		}
	}
	from, to := a.days(q)
	group := q.OneOf("group_by", reports.ByDay, reports.ByWeek, reports.ByMonth)
	if err := q.Err(); err != nil {
		return err
	}
	return c.Respond(a.Reports.Breakdown(c.App, from, to, group))
}

// maxReportYears limits the span of a report. Source: docs/decisions/billing.md, "Report parameters (all 13)".
const maxReportYears = 5

// The range of days that a report may cover.
const firstDay, lastDay = "1900-01-01", "2999-12-31"

// days reads date_from and date_to as days in the practice's zone; "" if left out.
func (a *api) days(q *web.Query) (from, to string) {
	between := q.Between()
	if !between.From.IsZero() {
		from = a.Billing.Day(between.From)
	}
	if !between.To.IsZero() {
		to = a.Billing.Day(between.To)
	}
	for name, day := range map[string]string{"date_from": from, "date_to": to} {
		if day != "" && (day < firstDay || day > lastDay) {
			q.Reject(name, "Must be from 1900 to 2999.")
		}
	}
	a.checkSpan(q, from, to)
	return from, to
}

func (a *api) checkSpan(q *web.Query, from, to string) {
	start, err := validate.ParseDate(from)
	if err == nil && to >= start.AddDate(maxReportYears, 0, 0).Format("2006-01-02") {
		q.Reject("date_from", "The span must not be longer than 5 years.")
	}
}

func report(name reports.Name) handler {
	return func(a *api, c *web.Call) error {
		q := c.Query()
		parameter := "export"
		if !q.Has(parameter) {
			parameter = "format"
		}
		return a.answerReport(c, q, name, q.OneOf(parameter, "json", "csv", "pdf"), nil)
	}
}

// exportReport writes any report to a file, with the requested columns.
func (a *api) exportReport(c *web.Call) error {
	q := c.Query()
	name, format := q.OneOf("report", stringsOf(reports.Names())...), q.OneOf("format", "csv", "pdf")
	var fields []string
	if text := q.Text("fields", 500); text != "" {
		for field := range strings.SplitSeq(text, ",") {
			fields = append(fields, strings.TrimSpace(field))
		}
	}
	return a.answerReport(c, q, reports.Name(cmp.Or(name, string(reports.Revenue))), cmp.Or(format, "csv"), fields)
}

// answerReport runs a report and renders it in a format; "" means JSON.
func (a *api) answerReport(c *web.Call, q *web.Query, name reports.Name, format string, fields []string) error {
	p := web.Paging{}
	if isFile := format == "csv" || format == "pdf"; name == reports.PatientSummary && !isFile {
		p = q.Paging()
	}
	query, err := a.reportQuery(c, q)
	if err != nil {
		return err
	}
	if p.Size > 0 {
		query.Offset, query.Limit = p.Offset(), p.Size
	}
	refresh := q.IsTrue("refresh")
	if err := q.Err(); err != nil {
		return err
	}
	result, err := a.Reports.Build(c.App, name, query, string(c.Caller.Role), refresh, c.Now)
	if err != nil {
		return err
	}
	shown, err := addPatientNames(c, result.Body)
	if err != nil {
		return err
	}
	if format == "csv" || format == "pdf" {
		return a.reportFile(c, result, format, fields, shown)
	}
	if err := recordPatients(c, audit.PatientRead, string(name), shown); err != nil {
		return err
	}
	return answerBody(c, result, p)
}

// reportQuery reads the parameters that all reports share; an unknown payer, provider or patient is 404.
func (a *api) reportQuery(c *web.Call, q *web.Query) (query reports.Query, err error) {
	payer, provider := q.Integer("payer_id"), q.Integer("provider_id")
	query = reports.Query{CPTCode: q.OneOf("cpt_code", a.catalogCodes()...), PatientID: q.PatientID()}
	query.From, query.To = a.days(q)
	if query.From != "" && query.To == "" && query.From > a.Billing.Day(c.Now) {
		q.Reject("date_from", "Must not be in the future.")
	}
	if query.To == "" {
		a.checkSpan(q, query.From, a.Billing.Day(c.Now))
	}
	if err := q.Err(); err != nil {
		return query, err
	}
	if payer != nil {
		found, err := collections.FindPayer(c.App, *payer)
		if err != nil {
			return query, fault.OrMissing(err)
		}
		query.Payer = &found.ID
	}
	if provider != nil {
		user, err := collections.FindUser(c.App, collections.NumberID(*provider))
		if err != nil {
			return query, fault.OrMissing(err)
		}
		query.Provider = &user.Id
	}
	if query.PatientID != "" {
		if _, err := collections.FindPatient(c.App, query.PatientID); err != nil {
			return query, fault.OrMissing(err)
		}
	}
	return query, nil
}

// addPatientNames decrypts the names of the patients in a report, which reports do not store, and returns their ids.
func addPatientNames(c *web.Call, body any) (ids []string, err error) {
	seen := map[string]bool{}
	each := func(visit func(id string, name, mrn *string)) {
		none := ""
		switch body := body.(type) {
		case reports.UnbilledBody:
			for i := range body.Results {
				visit(body.Results[i].PatientID, &body.Results[i].PatientName, &body.Results[i].MRN)
			}
		case reports.PatientSummaryBody:
			for i := range body.Results {
				visit(body.Results[i].PatientID, &body.Results[i].PatientName, &body.Results[i].MRN)
			}
		case reports.TasksBody:
			for i := range body.Items {
				visit(body.Items[i].PatientID, &body.Items[i].PatientName, &none)
			}
		}
	}
	each(func(id string, _, _ *string) { seen[id] = true })
	ids = slices.Sorted(maps.Keys(seen))
	for some := range slices.Chunk(ids, patientChunk) {
		names, err := patients.Names(c.App, some)
		if err != nil {
			return nil, err
		}
		each(func(id string, name, mrn *string) {
			if n, found := names[id]; found {
				*name, *mrn = n.FullName(), n.MRN
			}
		})
	}
	return ids, nil
}

// patientChunk limits how many patients are decrypted or recorded at once.
const patientChunk = 5000

// recordPatients records in the audit trail which patients a report showed.
func recordPatients(c *web.Call, event audit.Event, report string, ids []string) error {
	for some := range slices.Chunk(ids, patientChunk) {
		if err := c.RecordRead(event, audit.ResourceBillingReport, report, some...); err != nil {
			return err
		}
	}
	return nil
}

// answerBody wraps a report in its envelope. Source: docs/decisions/billing.md, "Report parameters (all 13)".
func answerBody(c *web.Call, result reports.Report, p web.Paging) error {
	body := result.Body
	if summary, ok := body.(reports.PatientSummaryBody); ok {
		page, err := web.PageOf(c, p, summary.Count, summary.Results)
		if err != nil {
			return err
		}
		body = page
	}
	wrapper, err := web.Encode(struct {
		Report      reports.Name `json:"report"`
		DateFrom    *string      `json:"date_from"`
		DateTo      *string      `json:"date_to"`
		GeneratedAt string       `json:"generated_at"`
		Cached      bool         `json:"cached"`
	}{result.Name, orNull(result.From), orNull(result.To), validate.FormatInstant(result.GeneratedAt), result.Cached})
	if err != nil {
		return err
	}
	inner, err := web.Encode(body)
	if err != nil {
		return err
	}
	wrapper[len(wrapper)-1] = ','
	return c.OK(json.RawMessage(append(wrapper, inner[1:]...)))
}

// reportFile writes the main table of a report to a file and records the export.
func (a *api) reportFile(c *web.Call, result reports.Report, format string, fields, shown []string) error {
	table := result.Table()
	if fields != nil {
		picked, unknown := table.SelectColumns(fields)
		if unknown != "" || slices.Contains(fields, "") {
			return fault.Field("fields", "Must be of: "+strings.Join(table.Columns, ", ")+".")
		}
		table = picked
	}
	err := audit.Append(c.App, audit.Entry{
		Event: audit.ReportExport, Actor: c.Actor(), ResourceType: audit.ResourceBillingReport, ResourceID: string(result.Name),
		Changes: audit.Changes{"format": {New: format}, "rows": {New: len(table.Rows)}},
	}, c.Now)
	if err == nil {
		err = recordPatients(c, audit.ReportExport, string(result.Name), shown)
	}
	if err != nil {
		return err
	}
	name := string(result.Name) + "-" + a.Billing.Day(c.Now)
	if format == "pdf" {
		return reportPDF(c, result, table, name+".pdf")
	}
	w := c.StartCSV(name + ".csv")
	err = web.WriteSafe(w, slices.Clone(table.Columns)...)
	for _, row := range table.Rows {
		if err != nil {
			return err
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = cell.Text; cell.HasFreeText {
				cells[i] = web.CSVSafe(cell.Text)
			}
		}
		err = w.Write(cells)
	}
	w.Flush()
	return errors.Join(err, w.Error())
}

// maxPDFRows limits the rows of a PDF; the CSV has all rows.
const maxPDFRows = 2000

func reportPDF(c *web.Call, result reports.Report, table reports.Table, filename string) error {
	d := pdf.New(result.Name.Title(), periodOf(result), result.GeneratedAt.UTC())
	title, labels, amounts := result.Chart()
	d.Bars(title, labels, amounts)
	widths := web.Map(table.Columns, func(column string) float64 { return max(4, float64(len(column))) })
	rows := [][]string{}
	for _, row := range table.Rows[:min(len(table.Rows), maxPDFRows)] {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i], widths[i] = cell.Text, max(widths[i], min(40, float64(len([]rune(cell.Text)))))
		}
		rows = append(rows, cells)
	}
	d.Heading("Table")
	d.Table(web.Map(table.Columns, heading), widths, rows)
	if left := len(table.Rows) - len(rows); left > 0 {
		d.Paragraph(fmt.Sprintf("%d more rows are in the CSV form of this report.", left))
	}
	return attachPDF(c, d, filename)
}

// periodOf describes the period of a report.
func periodOf(result reports.Report) string {
	switch {
	case result.From == "" && result.To == "":
		return "All dates"
	case result.From == "":
		return "Until " + result.To
	case result.To == "":
		return "Since " + result.From
	}
	return result.From + " to " + result.To
}
