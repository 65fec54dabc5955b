package collections

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The columns of a patient that callers fill.
const (
	PatientFirstName          = "first_name"
	PatientLastName           = "last_name"
	PatientDateOfBirth        = "date_of_birth"
	PatientGender             = "gender"
	PatientMRN                = "mrn"
	PatientPhone              = "phone"
	PatientEmail              = "email"
	PatientAddress            = "address"
	PatientSSN                = "ssn"
	PatientExternalID         = "external_id"
	PatientGatewayID          = "gateway_patient_id"
	PatientTimeZone           = "time_zone"
	PatientPrimaryProvider    = "primary_provider"
	PatientInsurancePayer     = "insurance_payer"
	PatientInsuranceMemberID  = "insurance_member_id"
	PatientInsuranceDetails   = "insurance_details"
	PatientICD10Codes         = "icd10_codes"
	PatientMonitoringSchedule = "monitoring_schedule"
)

// The columns of a patient that say how monitoring goes on, and how often the record has changed.
const (
	PatientActive        = "active"
	PatientArchivedAt    = "archived_at"
	PatientArchivedBy    = "archived_by"
	PatientArchiveReason = "archive_reason"
	PatientUnarchivedAt  = "unarchived_at"
	PatientUnarchivedBy  = "unarchived_by"
	PatientDeletedAt     = "deleted_at"
	PatientDeletedBy     = "deleted_by"
	PatientVersion       = "version"
)

// Schedule says how often each kind of reading is expected; kinds that are not in it are not expected.
type Schedule map[string]Expectation

// Expectation is the number of readings a day, on the named weekdays ("monday") or, when Days is empty, on all.
type Expectation struct {
	PerDay int      `json:"per_day"`
	Days   []string `json:"days,omitempty"`
}

// On reports whether readings are expected on a weekday ("monday").
func (e Expectation) On(weekday string) bool {
	return len(e.Days) == 0 || slices.Contains(e.Days, weekday)
}

// Patient is a person under monitoring.
type Patient struct{ dated }

// AsPatient reads a record of the patients collection as a Patient.
func AsPatient(record *core.Record) *Patient { return as[Patient](record) }

// NewPatient returns an unsaved patient with a fresh id.
func NewPatient(app core.App) (*Patient, error) {
	return fresh[Patient](app, Patients, map[string]any{"id": NewUUID()})
}

// FindPatient finds a patient who is not deleted.
func FindPatient(app core.App, id string) (*Patient, error) {
	p, err := FindPatientAnyState(app, id)
	if err == nil && p.Deleted() {
		return nil, fmt.Errorf("patient %s is deleted: %w", id, sql.ErrNoRows)
	}
	return p, err
}

// FindPatientAnyState finds a patient, archived and deleted ones included.
func FindPatientAnyState(app core.App, id string) (*Patient, error) {
	return findPatient(app, "id = {:value}", id)
}

// FindPatientByMRN finds the patient of any state who holds a medical record number, in any case.
func FindPatientByMRN(app core.App, mrn string) (*Patient, error) {
	return findPatient(app, "mrn = {:value} COLLATE NOCASE", mrn)
}

// FindPatientByGatewayID finds the patient of any state whom the device gateway knows by an identifier.
func FindPatientByGatewayID(app core.App, id string) (*Patient, error) {
	return findPatient(app, "gateway_patient_id = {:value} AND gateway_patient_id != ''", id)
}

// FindPatientByExternalID finds the patient of any state whom the EMR knows by an identifier (without "Patient/").
func FindPatientByExternalID(app core.App, id string) (*Patient, error) {
	return findPatient(app, "external_id = {:value} AND external_id != ''", id)
}

func findPatient(app core.App, where, value string) (*Patient, error) {
	return find[Patient](app, Patients, dbx.NewExp(where, dbx.Params{"value": value}))
}

// PatientsByID fetches patients of any state in the order of ids; ids without a patient are skipped.
func PatientsByID(app core.App, ids []string) ([]*Patient, error) {
	var found []*Patient
	err := app.RecordQuery(Patients).AndWhere(among(ids)).All(&found)
	if err != nil {
		return nil, fmt.Errorf("fetch %d patients: %w", len(ids), err)
	}
	place := make(map[string]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	slices.SortFunc(found, func(a, b *Patient) int { return place[a.Id] - place[b.Id] })
	return found, nil
}

// PatientEntry is what the directory of patients needs of one row.
type PatientEntry struct {
	ID, MRN         string
	First, Last     phi.Text
	Unreadable      bool // one of the names cannot be opened: both are empty
	Active, Deleted bool
	CreatedAt       time.Time
}

// PatientName is what shows whom a record is about.
type PatientName struct {
	ID, MRN     string
	First, Last phi.Text
	Unreadable  bool // one of them cannot be opened: both are empty
}

// PatientNames reads the names of the given ids, patients of any state, in no order. Nearly every list asks for them.
func PatientNames(app core.App, ids []string) (names []PatientName, err error) {
	query := app.DB().Select("id", "mrn", "first_name", "last_name").From(Patients).Where(among(ids))
	err = eachRow("read patients' names", query, func(rows *dbx.Rows) error {
		var n PatientName
		var first, last string
		if err := rows.Scan(&n.ID, &n.MRN, &first, &last); err != nil {
			return err
		}
		n.First, n.Last, n.Unreadable = openNames(Patients, n.ID, first, last)
		names = append(names, n)
		return nil
	})
	return names, err
}

// PatientPhones reads the phone numbers of the given ids, patients of any state; who has none, or one that cannot be opened, is left out.
func PatientPhones(app core.App, ids []string) (map[string]phi.Text, error) {
	phones := map[string]phi.Text{}
	query := app.DB().Select("id", "phone").From(Patients).Where(among(ids))
	err := eachRow("read patients' phones", query, func(rows *dbx.Rows) error {
		var id, sealed string
		if err := rows.Scan(&id, &sealed); err != nil {
			return err
		}
		if phone, err := OpenValue(sealed, Patients, PatientPhone, id); err == nil && phone != "" {
			phones[id] = phi.Text(phone)
		}
		return nil
	})
	return phones, err
}

// PatientsAfter are the ids of the next patients of any state, in order.
func PatientsAfter(app core.App, after string, limit int) ([]string, error) {
	return queryColumn[string](app, "list patients", `SELECT id FROM patients WHERE id > {:after} ORDER BY id LIMIT +{:limit}`,
		dbx.Params{"after": after, "limit": limit})
}

// FirstLast is "Ada Lovelace", or [UnreadableText]: the row of a patient in danger is not left out because the name cannot be opened, and the
// medical record number beside it says who it is.
func (n PatientName) FirstLast() string {
	if n.Unreadable {
		return UnreadableText
	}
	return strings.TrimSpace(n.First.Reveal() + " " + n.Last.Reveal())
}

// PatientLabel is "Ada Lovelace (M0001)": whom something is about that is read away from any list.
func PatientLabel(app core.App, id string) (string, error) {
	names, err := PatientNames(app, []string{id})
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0].FirstLast() + " (" + names[0].MRN + ")", nil
}

// PatientEntries reads the entries of the given ids in one query, in no order.
func PatientEntries(app core.App, ids []string) ([]PatientEntry, error) {
	return patientEntries(app.DB().Select().Where(among(ids)))
}

// PatientEntriesAfter reads up to limit entries in the order of ids, after the given one.
func PatientEntriesAfter(app core.App, id string, limit int) ([]PatientEntry, error) {
	return patientEntries(app.DB().Select().
		Where(dbx.NewExp("id > {:after}", dbx.Params{"after": id})).OrderBy("id").Limit(int64(limit)))
}

func patientEntries(query *dbx.SelectQuery) ([]PatientEntry, error) {
	var rows []struct {
		ID        string `db:"id"`
		MRN       string `db:"mrn"`
		First     string `db:"first_name"`
		Last      string `db:"last_name"`
		Active    bool   `db:"active"`
		DeletedAt string `db:"deleted_at"`
		CreatedAt string `db:"created_at"`
	}
	err := query.Select("id", "mrn", "first_name", "last_name", "active", "deleted_at", "created_at").From(Patients).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("read patient entries: %w", err)
	}
	entries := make([]PatientEntry, len(rows))
	for i, row := range rows {
		entries[i] = PatientEntry{
			ID: row.ID, MRN: row.MRN, Active: row.Active, Deleted: row.DeletedAt != "", CreatedAt: ParseInstant(row.CreatedAt),
		}
		entries[i].First, entries[i].Last, entries[i].Unreadable = openNames(Patients, row.ID, row.First, row.Last)
	}
	return entries, nil
}

// openNames opens the two names of a row of a list, in which one that cannot be opened must not hide the others: it has no names then, and says so.
func openNames(collection, id, sealedFirst, sealedLast string) (first, last phi.Text, unreadable bool) {
	one, err := OpenValue(sealedFirst, collection, "first_name", id)
	two, again := OpenValue(sealedLast, collection, "last_name", id)
	if err != nil || again != nil {
		return "", "", true
	}
	return phi.Text(one), phi.Text(two), false
}

// among selects any number of ids with one parameter.
func among(ids []string) dbx.Expression {
	return dbx.NewExp("id IN (SELECT value FROM json_each({:ids}))", dbx.Params{"ids": jsonList(ids)})
}

// Demographics opens the sealed identity of a patient who is [Readable].
func (p *Patient) Demographics() phi.Demographics {
	address, err := phi.ParseAddress(p.GetString(PatientAddress))
	if err != nil {
		address = nil // the column never holds anything else than what Plaintext wrote
	}
	return phi.Demographics{
		FirstName:   p.GetString(PatientFirstName),
		LastName:    p.GetString(PatientLastName),
		DateOfBirth: p.GetString(PatientDateOfBirth),
		SSN:         p.GetString(PatientSSN),
		Phone:       p.GetString(PatientPhone),
		Email:       p.GetString(PatientEmail),
		Address:     address,
	}
}

func (p *Patient) FirstName() phi.Text { return phi.Text(p.GetString(PatientFirstName)) }
func (p *Patient) LastName() phi.Text  { return phi.Text(p.GetString(PatientLastName)) }
func (p *Patient) InsuranceMemberID() phi.Text {
	return phi.Text(p.GetString(PatientInsuranceMemberID))
}

// Coverage is how the patient is insured; the zero value for not at all.
func (p *Patient) Coverage() (phi.Coverage, error) {
	covered, err := phi.ParseCoverage(p.GetString(PatientInsuranceDetails))
	if err != nil {
		return phi.Coverage{}, fmt.Errorf("insurance of patient %s: %w", p.Id, err)
	}
	if covered == nil {
		covered = &phi.Coverage{}
	}
	covered.Payer, covered.MemberID = p.InsurancePayerID(), p.InsuranceMemberID().Reveal()
	return *covered, nil
}

// SecondaryPayerID is the number of the payer that comes second; 0 for none.
func (p *Patient) SecondaryPayerID() int64 {
	if covered, err := p.Coverage(); err == nil && covered.Secondary != nil {
		return covered.Secondary.Payer
	}
	return 0
}

func (p *Patient) ArchiveReason() phi.Text { return phi.Text(p.GetString(PatientArchiveReason)) }

func (p *Patient) Gender() string           { return p.GetString(PatientGender) }
func (p *Patient) MRN() string              { return p.GetString(PatientMRN) }
func (p *Patient) ExternalID() string       { return p.GetString(PatientExternalID) }
func (p *Patient) GatewayPatientID() string { return p.GetString(PatientGatewayID) }
func (p *Patient) TimeZone() string         { return p.GetString(PatientTimeZone) }
func (p *Patient) Active() bool             { return p.GetBool(PatientActive) }
func (p *Patient) Deleted() bool            { return p.GetString(PatientDeletedAt) != "" }
func (p *Patient) Version() int             { return p.GetInt(PatientVersion) }

// PrimaryProviderID is the number of a user; 0 for none.
func (p *Patient) PrimaryProviderID() int64 { return Number(p.GetString(PatientPrimaryProvider)) }

// InsurancePayerID is the number of a payer; 0 for none.
func (p *Patient) InsurancePayerID() int64 { return int64(p.GetInt(PatientInsurancePayer)) }

func (p *Patient) ICD10Codes() []string { return p.GetStringSlice(PatientICD10Codes) }
func (p *Patient) Programs() []string   { return p.GetStringSlice("programs") }

// MonitoringSchedule is nil when none is stored: one reading a day of each assigned device is expected then.
func (p *Patient) MonitoringSchedule() Schedule {
	var schedule Schedule
	if p.UnmarshalJSONField(PatientMonitoringSchedule, &schedule) != nil {
		return nil
	}
	return schedule
}

func (p *Patient) ArchivedAt() time.Time   { return instantOf(p, PatientArchivedAt) }
func (p *Patient) ArchivedBy() string      { return p.GetString(PatientArchivedBy) }
func (p *Patient) UnarchivedAt() time.Time { return instantOf(p, PatientUnarchivedAt) }
func (p *Patient) UnarchivedBy() string    { return p.GetString(PatientUnarchivedBy) }
func (p *Patient) DeletedAt() time.Time    { return instantOf(p, PatientDeletedAt) }
func (p *Patient) DeletedBy() string       { return p.GetString(PatientDeletedBy) }

// SetBlindIndex stores the index of a sealed column beside it.
func (p *Patient) SetBlindIndex(column, index string) { p.Set(column+"_index", index) }

// BlindIndex is the keyed hash under which equal values of a sealed column find each other; "" for "".
func BlindIndex(label, normalised string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Index(label, normalised), nil
}

// KnownExternalIDs are those of the given EMR ids that a patient of any state has.
func KnownExternalIDs(app core.App, ids []string) ([]string, error) {
	return queryColumn[string](app, "find external ids",
		`SELECT external_id FROM patients WHERE external_id IN (SELECT value FROM json_each({:ids})) AND external_id != ''`, dbx.Params{"ids": jsonList(ids)})
}

// ExternalIDOf is the EMR's id of a patient of any state; "" when there is none.
func ExternalIDOf(app core.App, patientID string) (string, error) {
	id, err := queryValue[string](app, "find the patient's EMR id", `SELECT external_id FROM patients WHERE id = {:id}`, dbx.Params{"id": patientID})
	return id, unlessMissing(err)
}

// CountPeople counts the patients whose EMR id begins with a text, and all users.
func CountPeople(app core.App, externalPrefix string) (patients, users int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM patients WHERE external_id LIKE {:prefix} || '%'), (SELECT COUNT(*) FROM users)`).
		Bind(dbx.Params{"prefix": externalPrefix}).Row(&patients, &users)
	return patients, users, wrap(err, "count people")
}

// Answers reports whether the database answers.
func Answers(ctx context.Context, app core.App) error {
	_, err := app.DB().NewQuery("SELECT 1 FROM patients LIMIT 1").WithContext(ctx).Execute()
	return err
}
