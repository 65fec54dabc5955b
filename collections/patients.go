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

// Columns of a patient that callers fill.
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
	PatientReferringProvider  = "referring_provider"
	PatientICD10Codes         = "icd10_codes"
	PatientMonitoringSchedule = "monitoring_schedule"
	PatientPreferredLanguage  = "preferred_language"
	PatientMessaging          = "messaging"
	PatientReminderAt         = "reminder_at"
)

// PatientMessagingStoppedAt is when the patient's phone sent stop; only messages from that phone change it.
const PatientMessagingStoppedAt = "messaging_stopped_at"

// Columns with the state of monitoring, and the version of the record.
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

// Schedule is the expected number of readings of each kind; no readings of other kinds are expected.
type Schedule map[string]Expectation

// Expectation is the number of readings per day, on the named weekdays ("monday"), or daily if Days is empty.
type Expectation struct {
	PerDay int      `json:"per_day"`
	Days   []string `json:"days,omitempty"`
}

// ExpectsOn reports whether readings are expected on a weekday ("monday").
func (e Expectation) ExpectsOn(weekday string) bool {
	return len(e.Days) == 0 || slices.Contains(e.Days, weekday)
}

// PerWeek returns how many readings are expected in a week.
func (e Expectation) PerWeek() int {
	days := len(e.Days)
	if days == 0 {
		days = 7
	}
	return max(e.PerDay, 1) * days
}

// Patient is a person under monitoring.
type Patient struct{ datedRecord }

// AsPatient converts a record of the patients collection.
func AsPatient(record *core.Record) *Patient { return as[Patient](record) }

// NewPatient returns an unsaved patient with a new id.
func NewPatient(app core.App) (*Patient, error) {
	return newRecord[Patient](app, Patients, map[string]any{"id": NewUUID()})
}

// FindPatient finds a patient who is not deleted.
func FindPatient(app core.App, id string) (*Patient, error) {
	p, err := FindPatientAnyState(app, id)
	if err == nil && p.Deleted() {
		return nil, fmt.Errorf("patient %s is deleted: %w", id, sql.ErrNoRows)
	}
	return p, err
}

// FindPatientAnyState finds a patient, including archived and deleted ones.
func FindPatientAnyState(app core.App, id string) (*Patient, error) {
	return findPatient(app, "id = {:value}", id)
}

// FindPatientByMRN finds a patient in any state by medical record number, ignoring case.
func FindPatientByMRN(app core.App, mrn string) (*Patient, error) {
	return findPatient(app, "mrn = {:value} COLLATE NOCASE", mrn)
}

// FindPatientByGatewayID finds a patient in any state by the device gateway's id.
func FindPatientByGatewayID(app core.App, id string) (*Patient, error) {
	return findPatient(app, "gateway_patient_id = {:value} AND gateway_patient_id != ''", id)
}

// FindPatientByExternalID finds a patient in any state by the EMR's id (without "Patient/").
func FindPatientByExternalID(app core.App, id string) (*Patient, error) {
	return findPatient(app, "external_id = {:value} AND external_id != ''", id)
}

func findPatient(app core.App, where, value string) (*Patient, error) {
	return find[Patient](app, Patients, dbx.NewExp(where, dbx.Params{"value": value}))
}

// PatientsByID returns patients in any state in the order of ids, and skips ids without a patient.
func PatientsByID(app core.App, ids []string) ([]*Patient, error) {
	var found []*Patient
	err := app.RecordQuery(Patients).AndWhere(idIn(ids)).All(&found)
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

// DirectoryEntry is a patient in the search directory.
type DirectoryEntry struct {
	ID, MRN         string
	First, Last     phi.Text
	Unreadable      bool // one of the names cannot be opened: both are empty
	Active, Deleted bool
	CreatedAt       time.Time
}

// PatientName identifies a patient in a list.
type PatientName struct {
	ID, MRN     string
	First, Last phi.Text
	Unreadable  bool // one of the names cannot be opened: both are empty
}

// PatientNames returns the names of patients in any state, in no order. Almost every list needs them.
func PatientNames(app core.App, ids []string) (names []PatientName, err error) {
	query := app.DB().Select("id", "mrn", "first_name", "last_name").From(Patients).Where(idIn(ids))
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

// PatientPhones returns the phone numbers of patients in any state; patients without a readable one are omitted.
func PatientPhones(app core.App, ids []string) (map[string]phi.Text, error) {
	phones := map[string]phi.Text{}
	query := app.DB().Select("id", "phone").From(Patients).Where(idIn(ids))
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

// PatientsAfter returns the ids of the next patients in any state, in order.
func PatientsAfter(app core.App, after string, limit int) ([]string, error) {
	return queryColumn[string](app, "list patients", `SELECT id FROM patients WHERE id > {:after} ORDER BY id LIMIT +{:limit}`,
		dbx.Params{"after": after, "limit": limit})
}

// FullName returns a name such as "Ada Lovelace", or [UnreadableText]: a critical patient must stay on the list, and the MRN still identifies
// the patient.
func (n PatientName) FullName() string {
	if n.Unreadable {
		return UnreadableText
	}
	return strings.TrimSpace(n.First.Reveal() + " " + n.Last.Reveal())
}

// PatientLabel returns a label such as "Ada Lovelace (M0001)", for texts that are read outside a list.
func PatientLabel(app core.App, id string) (string, error) {
	names, err := PatientNames(app, []string{id})
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0].FullName() + " (" + names[0].MRN + ")", nil
}

// DirectoryEntries reads the entries of the given ids with one query, in no order.
func DirectoryEntries(app core.App, ids []string) ([]DirectoryEntry, error) {
	return directoryEntries(app.DB().Select().Where(idIn(ids)))
}

// DirectoryEntriesAfter reads up to limit entries after an id, in order of ids.
func DirectoryEntriesAfter(app core.App, id string, limit int) ([]DirectoryEntry, error) {
	return directoryEntries(app.DB().Select().
		Where(dbx.NewExp("id > {:after}", dbx.Params{"after": id})).OrderBy("id").Limit(int64(limit)))
}

func directoryEntries(query *dbx.SelectQuery) ([]DirectoryEntry, error) {
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
	entries := make([]DirectoryEntry, len(rows))
	for i, row := range rows {
		entries[i] = DirectoryEntry{
			ID: row.ID, MRN: row.MRN, Active: row.Active, Deleted: row.DeletedAt != "", CreatedAt: ParseInstant(row.CreatedAt),
		}
		entries[i].First, entries[i].Last, entries[i].Unreadable = openNames(Patients, row.ID, row.First, row.Last)
	}
	return entries, nil
}

// openNames opens the two names of a row. If one cannot be opened, both are empty and unreadable is set, so a list still shows its other rows.
func openNames(collection, id, sealedFirst, sealedLast string) (first, last phi.Text, unreadable bool) {
	one, err := OpenValue(sealedFirst, collection, "first_name", id)
	two, again := OpenValue(sealedLast, collection, "last_name", id)
	if err != nil || again != nil {
		return "", "", true
	}
	return phi.Text(one), phi.Text(two), false
}

// Demographics opens the sealed identity of a patient who is [Readable].
func (p *Patient) Demographics() phi.Demographics {
	address, err := phi.ParseAddress(p.GetString(PatientAddress))
	if err != nil {
		address = nil // unreachable: only phi.Address.Plaintext writes the column
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

// Coverage returns the patient's insurance, or the zero value.
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

// ReferringProvider returns who referred the patient; nil for no one.
func (p *Patient) ReferringProvider() (*phi.Practitioner, error) {
	return phi.ParsePractitioner(p.GetString(PatientReferringProvider))
}

// SecondaryPayerID returns the number of the secondary payer, or 0.
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

// PrimaryProviderID returns the number of a user, or 0.
func (p *Patient) PrimaryProviderID() int64 { return Number(p.GetString(PatientPrimaryProvider)) }

// InsurancePayerID returns the number of a payer, or 0.
func (p *Patient) InsurancePayerID() int64 { return int64(p.GetInt(PatientInsurancePayer)) }

func (p *Patient) ICD10Codes() []string { return p.GetStringSlice(PatientICD10Codes) }
func (p *Patient) Programs() []string   { return p.GetStringSlice("programs") }

// MonitoringSchedule returns nil if none is stored: then one reading a day of each assigned device is expected.
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

// SetBlindIndex stores the blind index of a sealed column.
func (p *Patient) SetBlindIndex(column, index string) { p.Set(column+"_index", index) }

// BlindIndex returns the keyed hash of a value, for equality search without decryption; "" for "".
func BlindIndex(label, normalized string) (string, error) {
	s := sealer.Load()
	if s == nil {
		return "", errNoSealer
	}
	return s.Index(label, normalized), nil
}

// ExistingExternalIDs returns which of the EMR ids belong to a patient in any state.
func ExistingExternalIDs(app core.App, ids []string) ([]string, error) {
	return queryColumn[string](app, "find external ids",
		`SELECT external_id FROM patients WHERE external_id IN (SELECT value FROM json_each({:ids})) AND external_id != ''`, dbx.Params{"ids": jsonList(ids)})
}

// ExternalIDOf returns the EMR's id of a patient in any state, or "".
func ExternalIDOf(app core.App, patientID string) (string, error) {
	id, err := queryValue[string](app, "find the patient's EMR id", `SELECT external_id FROM patients WHERE id = {:id}`, dbx.Params{"id": patientID})
	return id, IgnoreNotFound(err)
}

// CountPeople counts the patients with a prefix of the EMR id, and all users.
func CountPeople(app core.App, externalPrefix string) (patients, users int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM patients WHERE external_id LIKE {:prefix} || '%'), (SELECT COUNT(*) FROM users)`).
		Bind(dbx.Params{"prefix": externalPrefix}).Row(&patients, &users)
	return patients, users, wrap(err, "count people")
}

// Ping returns an error if the database does not answer.
func Ping(ctx context.Context, app core.App) error {
	_, err := app.DB().NewQuery("SELECT 1 FROM patients LIMIT 1").WithContext(ctx).Execute()
	return err
}
