package routes_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// readPDF reads a PDF and returns its number of pages and its text, word by word in drawing order.
func readPDF(t *testing.T, answer reply) (pages int, text string) {
	t.Helper()
	raw := []byte(answer.want(200).body)
	if !bytes.HasPrefix(raw, []byte("%PDF-")) || !bytes.Contains(raw, []byte("%%EOF")) {
		t.Fatalf("no PDF: %.80s", raw)
	}
	if folder := os.Getenv("VIGIL_PAPERS"); folder != "" {
		name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
		if err := os.WriteFile(filepath.Join(folder, name+".pdf"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return vigiltest.PDFText(raw)
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	joined := strings.Join(strings.Fields(text), " ")
	for _, word := range words {
		if !strings.Contains(joined, word) {
			t.Errorf("the sheet does not say %q:\n%s", word, text)
		}
	}
}

// readers are third-party programs that write a PDF's text to standard output, each with its arguments.
var readers = [][]string{
	{"pdftotext", "-layout", "FILE", "-"},
	{"mutool", "draw", "-F", "txt", "FILE"},
	{"python3", "-c", "import sys, pypdf; print('\\n'.join(page.extract_text() for page in pypdf.PdfReader(sys.argv[1]).pages))", "FILE"},
}

// readWithOtherTools reads a PDF with every installed reader and expects the same words from each.
func readWithOtherTools(t *testing.T, raw string, words ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "visit-report.pdf")
	if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, reader := range readers {
		if reader[0] == "python3" && exec.CommandContext(t.Context(), "python3", "-c", "import pypdf").Run() != nil {
			continue
		}
		if _, err := exec.LookPath(reader[0]); err != nil {
			continue
		}
		found = true
		args := slices.Clone(reader[1:])
		args[slices.Index(args, "FILE")] = file
		out, err := exec.CommandContext(t.Context(), reader[0], args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s cannot read it: %v\n%s", reader[0], err, out)
			continue
		}
		wantWords(t, string(out), words...)
	}
	if !found {
		t.Skip("no other PDF reader is installed: neither pdftotext, mutool nor pypdf")
	}
}

// A blood pressure that rose in the last days: the finding in words, the means, the actions taken, and what was left
// out.
func TestVisitReport(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) {
		e.PracticeName, e.Letterhead = "Hudson Valley Heart Clinic", "12 Mill Road, Albany NY 12207 · (518) 555-0100"
	})
	c.now = time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC) // noon in New York
	provider := c.people[authz.Provider]
	id := c.enroll(object{
		"first_name": "Kwame", "last_name": "Hall", "date_of_birth": "1959-03-04", "gender": "male", "phone": "(518) 555-0120", "icd10_codes": []string{"I50.9", "I10"},
		"time_zone": "America/New_York", "primary_provider_id": provider.Number(),
	})
	pressure := func(daysAgo, hour int, systolic, diastolic float64, more dbx.Params) {
		values := dbx.Params{"systolic": systolic, "diastolic": diastolic, "pulse": 80.0, "device_id": "BP-4471"}
		for name, value := range more {
			values[name] = value
		}
		c.storedReading(id, "blood_pressure", time.Date(2026, 1, 15-daysAgo, hour, 10, 0, 0, newYork), values)
	}
	for ago := 80; ago > 7; ago-- {
		if ago != 20 && ago != 21 && ago != 22 { // a gap
			pressure(ago, 8, 130, 80, nil)
			pressure(ago, 20, 132, 82, nil)
		}
	}
	for ago := 6; ago >= 1; ago-- {
		pressure(ago, 8, 150, 92, nil)
		pressure(ago, 20, 160, 98, nil)
	}
	pressure(3, 9, 90, 50, dbx.Params{"review_state": "suspect"})
	pressure(4, 9, 250, 120, dbx.Params{"status": "entered_in_error"})
	pressure(2, 11, 149, 91, dbx.Params{"origin": "staff", "source": "api"})
	c.storedReading(id, "weight", time.Date(2026, 1, 10, 8, 0, 0, 0, newYork), dbx.Params{"weight_kg": 88.5})
	c.storedReading(id, "weight", time.Date(2026, 1, 14, 8, 0, 0, 0, newYork), dbx.Params{"weight_kg": 90.1})
	c.request(authz.Provider, "PUT", "/patients/"+id+"/vital-config/", object{"weight": object{"target_kg": 88}, "reason": "heart failure"}).want(200)
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": id, "systolic": 188, "diastolic": 114, "measured_at": c.now.Add(-20 * time.Minute).Format(time.RFC3339),
	}).want(201)
	alert := c.request(authz.Nurse, "GET", "/alerts/?patient_id="+id+"&level=critical", nil).results()[0]
	c.request(authz.Nurse, "POST", fmt.Sprintf("/alerts/%.0f/acknowledge/", alert["id"]), object{"outcome": "patient_contacted", "clinical_note": "Headache, took lisinopril late."}).want(200)
	c.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": id, "category": "interactive", "activity": "phone_call", "contact_method": "phone", "started_at": c.now.Add(-10 * time.Minute).Format(time.RFC3339),
		"duration_seconds": 360, "notes": "Salty dinner on Friday; agreed to measure twice a day.",
	}).want(201)
	before := len(c.events(id))

	answer := c.request(authz.Provider, "GET", "/patients/"+id+"/report/", nil)
	pages, text := readPDF(t, answer)
	if pages != 1 {
		t.Errorf("the sheet has %d pages", pages)
	}
	wantWords(t, text,
		"Blood pressure is higher in the last 7 days.", "Kwame Hall", "Born Mar 4, 1959, 66, male", "I50.9, I10", "(518) 555-0120", "Times: patient's, EST",
		"Hudson Valley Heart Clinic", "12 Mill Road, Albany NY 12207", "Dec 17, 2025 to Jan 15, 2026, for Test Person",
		"One critical reading in the last 7 days, 188/114 on Jan 15 11:40.", "Weight +1.6 kg in 7 days, 2.1 kg over target.",
		"Left out: 1 suspect, 1 withdrawn, 0 implausible", "2 typed by hand", "At the visit", "Limits in force", "In range; hatched: not", "Page 1 of 1",
		"Made Jan 15, 2026 12:00 EST by Test Person. Home readings, not a diagnosis.", "Patient contacted; Headache, took lisinopril late; T. Person, Jan 15 12:00",
	)
	t.Run("read elsewhere", func(t *testing.T) {
		readWithOtherTools(t, answer.body, "Home monitoring report", "Kwame Hall", "Blood pressure is higher in the last 7 days.", "188/114", "Limits in force", "Page 1 of 1")
	})
	// The means are those of the summary, rounded to whole numbers.
	for _, days := range []int{7, 30, 90} {
		g := c.summary(id, days)["blood_pressure"].(object)
		wantWords(t, text, fmt.Sprintf("%.0f/%.0f", g["mean_systolic"], g["mean_diastolic"]), fmt.Sprintf("%.0f", g["readings"]))
	}
	// A provider reads only their own minutes, and the notes of the team; a manager also reads the nurse's minutes.
	wantWords(t, text, "T. Person: Salty dinner on Friday; agreed to measure twice a day.")
	_, whole := readPDF(t, c.request(authz.ClinicalManager, "GET", "/patients/"+id+"/report/?days=90", nil))
	wantWords(t, whole, "T. Person, 6 min: Salty dinner on Friday; agreed to measure twice a day.", "Oct 18, 2025 to Jan 15, 2026")
	if events := c.events(id)[before:]; len(events) < 2 || events[0] != "patient.read" {
		t.Errorf("the audit log has %v", events)
	}
	var subjects []string
	err := c.app.DB().Select("resource_type").From("audit_log").Where(dbx.HashExp{"patient": id, "resource_type": "VisitReport"}).Column(&subjects)
	if err != nil || len(subjects) != 2 {
		t.Errorf("%d reports were recorded, want 2: %v", len(subjects), err)
	}
}

// The file name contains no PHI, and a user who may not read the chart gets no report.
func TestVisitReportRequiresChartAccess(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"first_name": "Markedfirst", "last_name": "Markedlast", "mrn": "MARKED-7"})
	path := "/patients/" + id + "/report/"
	c.wantRoles("GET", path, nil, clinical...)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1"+path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+vigiltest.Token(t, c.people[authz.Nurse], c.now))
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	if named := rec.Header().Get("Content-Disposition"); named != `attachment; filename=visit-report.pdf` {
		t.Errorf("the file is called %s", named)
	}
	if kind := rec.Header().Get("Content-Type"); kind != "application/pdf" {
		t.Errorf("the answer is %s", kind)
	}
	for _, days := range []string{"6", "91", "0", "-1", "x", "3.5"} {
		c.request(authz.Nurse, "GET", path+"?days="+days, nil).wantFields("days")
	}
	c.request(authz.Nurse, "GET", "/patients/"+unknownPatient+"/report/", nil).want(404)
	pages, text := readPDF(t, c.request(authz.Nurse, "GET", path+"?days=7", nil))
	if pages != 1 {
		t.Errorf("an empty sheet has %d pages", pages)
	}
	wantWords(t, text, "No readings in these 7 days.", "No blood pressure was measured in these 7 days.", "No device assigned", "No phone recorded", "None in these days.")
}

// A report without long lists fits on one page; more entries continue on further pages, each whole.
func TestVisitReportContinues(t *testing.T) {
	c := newIngestingClinic(t)
	long := strings.Repeat("Wolfeschlegelsteinhausen ", 8)
	id := c.enroll(object{"first_name": long[:90], "last_name": long[:90], "phone": "+1 518 555 0120"})
	for i := range 400 {
		at := c.now.Add(-time.Duration(i)*4*time.Hour - time.Minute)
		c.storedReading(id, "blood_pressure", at, dbx.Params{"systolic": 110.0 + float64(i%90), "diastolic": 70.0 + float64(i%40), "pulse": 70.0})
		c.storedReading(id, "pulse_oximetry", at, dbx.Params{"spo2": 95.0, "pulse": 70.0})
		c.storedReading(id, "blood_glucose", at, dbx.Params{"glucose_mg_dl": 110.0})
		c.storedReading(id, "body_temperature", at, dbx.Params{"temperature_c": 36.6})
		c.storedReading(id, "weight", at, dbx.Params{"weight_kg": 80.0})
	}
	for i := range 12 {
		c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
			"patient_id": id, "systolic": 190 + i, "diastolic": 121, "measured_at": c.now.Add(-time.Duration(i+1) * time.Hour).Format(time.RFC3339),
		}).want(201)
		c.request(authz.ClinicalManager, "POST", "/time-entries/", object{
			"patient_id": id, "category": "review", "started_at": c.now.Add(-time.Duration(i+1) * 25 * time.Hour).Format(time.RFC3339), "duration_seconds": 60,
			"notes": strings.Repeat("A long note about everything that was said. ", 10),
		}).want(201)
	}
	pages, text := readPDF(t, c.request(authz.ClinicalManager, "GET", "/patients/"+id+"/report/?days=90", nil))
	if pages < 2 || pages > 3 {
		t.Errorf("a full sheet has %d pages", pages)
	}
	wantWords(t, text, "more on the next page.", "Calls and notes, continued", "At the visit", "Temperature", "SpO₂", "Glucose", "the highest 201/121")
	if n := strings.Count(strings.Join(strings.Fields(text), " "), "A long note about everything that was said."); n != 120 {
		t.Errorf("%d of 120 sentences of the notes are printed", n)
	}
}

// A name is printed completely, or visibly replaced.
func TestVisitReportNames(t *testing.T) {
	for first, whole := range map[string]bool{
		"Łukasz": true, "Nguyễn": true, "Ελένη": true, "Дмитрий": true, "O'Ñîçé–Smith": true, "Zoe\u0308": true, "Zoë\u0308": false, "محمد": false, "שרה": false, "李": false, "🦊": false, "ナオミ": false,
	} {
		c := newClinic(t)
		id := c.enroll(object{"first_name": first, "last_name": "Hall", "mrn": "A-77"})
		_, text := readPDF(t, c.request(authz.Nurse, "GET", "/patients/"+id+"/report/", nil))
		if strings.Contains(text, "□") == whole {
			t.Errorf("%s is printed completely: %v is wrong:\n%.200s", first, whole, text)
		}
		if whole {
			continue
		}
		wantWords(t, text, "Hall", "MRN A-77", "letters that this font does not have")
		if strings.Contains(text, first) {
			t.Errorf("%s is printed although the font lacks its letters", first)
		}
	}
}

// Days begin at midnight in the patient's time zone: a reading at 23:30 in Honolulu belongs to that day, and the report
// names the zone.
func TestVisitReportZone(t *testing.T) {
	c := newIngestingClinic(t)
	c.now = time.Date(2026, 1, 15, 9, 45, 0, 0, time.UTC) // 23:45 on the 14th in Honolulu
	id := c.enroll(object{"time_zone": "Pacific/Honolulu"})
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": id, "systolic": 188, "diastolic": 114, "measured_at": c.now.Add(-15 * time.Minute).Format(time.RFC3339),
	}).want(201)
	_, text := readPDF(t, c.request(authz.Nurse, "GET", "/patients/"+id+"/report/", nil))
	wantWords(t, text, "188/114 on Jan 14 23:30", "Times: patient's, HST", "Dec 16, 2025 to Jan 14, 2026", "Made Jan 14, 2026 23:45 HST")
}

// The report's summary by readings: it compares periods with enough readings, states where there are too few, and never
// reports a suspect value as a finding.
func TestVisitReportFindings(t *testing.T) {
	c := newIngestingClinic(t)
	type days struct {
		from, to            int // days ago
		systolic, diastolic float64
	}
	for name, story := range map[string]struct {
		notified []days
		words    []string
	}{
		"lower":       {[]days{{80, 8, 150, 92}, {6, 0, 130, 80}}, []string{"Blood pressure is lower in the last 7 days.", "No critical reading in the last 7 days."}},
		"as before":   {[]days{{80, 0, 130, 80}}, []string{"Blood pressure of the last 7 days is as that of 90.", "Blood pressure: mean of 7 days 130/80, of 90 days 130/80."}},
		"both ways":   {[]days{{80, 8, 130, 90}, {6, 0, 140, 80}}, []string{"Blood pressure of the last 7 days differs from that of 90."}},
		"only lower":  {[]days{{80, 8, 130, 90}, {6, 0, 130, 80}}, []string{"Blood pressure is lower in the last 7 days."}},
		"too few":     {[]days{{60, 60, 130, 80}, {1, 0, 170, 100}}, []string{"Too few blood pressure readings to compare."}},
		"long silent": {[]days{{60, 20, 130, 80}}, []string{"No blood pressure in the last 7 days.", "Blood pressure: mean of 90 days 130/80.", "20 days ago."}},
		"at bounds":   {[]days{{20, 1, 130, 80}, {0, 0, 180, 80}}, []string{"One critical reading in the last 7 days, 180/80 on"}},
		"one below":   {[]days{{20, 1, 130, 80}, {0, 0, 179, 80}}, []string{"No critical reading in the last 7 days."}},
	} {
		t.Run(name, func(t *testing.T) {
			id := c.enroll(object{})
			for _, part := range story.notified {
				for ago := part.from; ago >= part.to; ago-- {
					c.storedReading(id, "blood_pressure", c.now.AddDate(0, 0, -ago).Add(-time.Minute), dbx.Params{"systolic": part.systolic, "diastolic": part.diastolic})
				}
			}
			// Implausible, and suspect: in no mean and no finding.
			c.storedReading(id, "blood_pressure", c.now.AddDate(0, 0, -2), dbx.Params{"systolic": 240.0, "diastolic": 140.0, "review_state": "suspect"})
			_, text := readPDF(t, c.request(authz.Nurse, "GET", "/patients/"+id+"/report/?days=90", nil))
			wantWords(t, text, append(story.words, "Left out: 1 suspect")...)
			if strings.Contains(text, "240/140") {
				t.Error("a doubted reading is a finding")
			}
		})
	}
}

// Parameters other than blood pressure that are out of bounds are also summarized, and a number labeled as an MRN is not
// labeled twice.
func TestVisitReportOtherParameters(t *testing.T) {
	c := newIngestingClinic(t)
	id := c.enroll(object{"mrn": "MRN-0042"})
	for ago := 20; ago >= 1; ago-- {
		c.storedReading(id, "blood_pressure", c.now.AddDate(0, 0, -ago), dbx.Params{"systolic": 130.0, "diastolic": 80.0})
	}
	c.storedReading(id, "pulse_oximetry", c.now.AddDate(0, 0, -2), dbx.Params{"spo2": 87.0, "pulse": 70.0})
	c.storedReading(id, "pulse_oximetry", c.now.Add(-time.Hour), dbx.Params{"spo2": 90.0, "pulse": 70.0})
	c.storedReading(id, "blood_glucose", c.now.Add(-time.Hour), dbx.Params{"glucose_mg_dl": 110.0})
	_, text := readPDF(t, c.request(authz.Nurse, "GET", "/patients/"+id+"/report/", nil))
	wantWords(t, text, "The last SpO₂, 90 % on", "is at or beyond the warning limit.", "MRN-0042")
	for _, wrong := range []string{"MRN MRN", "The last Glucose", "The last Pulse"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the report has %q", wrong)
		}
	}
}
