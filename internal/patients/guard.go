package patients

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// mrnSequence numbers the MRNs that the service assigns.
const mrnSequence = "mrn"

// textColumns and jsonColumns have the same names in the contract and the schema; provider and insurance do not.
var (
	textColumns = []string{
		collections.PatientFirstName, collections.PatientLastName, collections.PatientDateOfBirth, collections.PatientGender,
		collections.PatientMRN, collections.PatientPhone, collections.PatientEmail, collections.PatientSSN,
		collections.PatientExternalID, collections.PatientGatewayID, collections.PatientTimeZone,
		collections.PatientPreferredLanguage, collections.PatientReminderAt,
	}
	jsonColumns = []string{
		collections.PatientAddress, collections.PatientICD10Codes, collections.PatientMonitoringSchedule, collections.PatientReferringProvider,
		collections.PatientMessaging,
	}
	insuranceColumns = []string{collections.PatientInsurancePayer, collections.PatientInsuranceMemberID, collections.PatientInsuranceDetails}

	bodyColumns = slices.Concat(textColumns, jsonColumns, insuranceColumns, []string{collections.PatientPrimaryProvider})
)

// Guard validates and completes a patient's record, stores it with save, and updates what depends on it, in the transaction of the save,
// for any writer. It normalizes new and changed values as [Body.Read] does, assigns an MRN to a new patient, maintains blind indexes,
// version and times, and keeps the columns of archiving and deletion consistent; see also [afterSave]. Errors are [validation.Errors] by
// column, which the dashboard shows next to the input. byHand is true for a write in the dashboard, which no one else audits.
// Source: docs/decisions/patients.md, "MRN" and docs/decisions/security.md, "Lookups on encrypted values".
func Guard(tx core.App, record *core.Record, by audit.Actor, byHand bool, now time.Time, practice *time.Location, save func() error) error {
	p := collections.AsPatient(record)
	if named, ok := record.GetRaw(stateSetKey).(audit.Actor); ok {
		by = named
	}
	stored, err := beforeSave(tx, p, by, now, practice)
	if err != nil {
		return err
	}
	if err := save(); err != nil {
		return err
	}
	if err := afterSave(tx, p, stored, by, now, practice); err != nil || !byHand {
		return err
	}
	if stored == nil {
		return auditPatient(tx, audit.PatientCreate, p, audit.Changes{}, by, now)
	}
	return auditPatient(tx, auditEventOf(stored, p), p, auditValues(stored), by, now)
}

// beforeSave validates and completes the record, and returns the stored one; nil for a new patient.
func beforeSave(app core.App, p *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) (stored *collections.Patient, err error) {
	if !p.IsNew() {
		if err := collections.Readable(p.ProxyRecord()); err != nil {
			return nil, err // an unreadable record must not be changed
		}
		if stored, err = collections.FindPatientAnyState(app, p.Id); err != nil {
			return nil, err
		}
	} else if p.MRN() == "" {
		number, err := nextMRN(app)
		if err != nil {
			return nil, err
		}
		p.Set(collections.PatientMRN, number)
	}
	changed := changedColumns(p, stored)
	wrong := normalize(p, changed, now, practice)
	guardState(p, stored, by, now, practice, wrong)
	if err := checkReferences(app, p, changed, wrong); err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if err := updateBlindIndexes(p, changed); err != nil {
		return nil, err
	}
	setVersionAndTimes(p, stored, now)
	return stored, nil
}

// changedColumns returns the columns that differ from the stored ones; all for a new record.
func changedColumns(p, stored *collections.Patient) []string {
	if stored == nil {
		return bodyColumns
	}
	var changed []string
	for _, column := range bodyColumns {
		if p.GetString(column) != stored.GetString(column) {
			changed = append(changed, column)
		}
	}
	if slices.ContainsFunc(insuranceColumns, func(column string) bool { return slices.Contains(changed, column) }) {
		changed = append(changed, insuranceColumns...)
	}
	return changed
}

// normalize reads the changed columns as a body and stores the normalized values.
func normalize(p *collections.Patient, changed []string, now time.Time, practice *time.Location) validation.Errors {
	c, wrong := validate.NewChecks(), validation.Errors{}
	draft := bodyOf(p, changed).ReadReplacement(c, now, practice)
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		if column, inner := columnOf(name); slices.Contains(changed, column) {
			addProblem(wrong, column, inner, c.Fields[name][0])
		}
	}
	for _, column := range changed {
		if value, ok := draft.columns[column]; ok && wrong[column] == nil {
			p.Set(column, value)
		}
	}
	return wrong
}

// addProblem adds an error of a column, or of a part of its value; only the first of each counts.
func addProblem(wrong validation.Errors, column, inner, message string) {
	complaint := validation.NewError("validation_invalid_value", message)
	if inner == "" {
		if wrong[column] == nil {
			wrong[column] = complaint
		}
		return
	}
	if wrong[column] == nil {
		wrong[column] = validation.Errors{}
	}
	if parts, ok := errors.AsType[validation.Errors](wrong[column]); ok && parts[inner] == nil {
		parts[inner] = complaint
	}
}

// bodyOf returns the body for the values of the given columns.
func bodyOf(p *collections.Patient, changed []string) (body Body) {
	raw, err := json.Marshal(membersOf(p, changed))
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		return Body{} // fails on all required fields
	}
	return body
}

// membersOf returns the members of that body.
func membersOf(p *collections.Patient, columns []string) map[string]any {
	members := map[string]any{}
	for _, column := range columns {
		switch {
		case slices.Contains(textColumns, column):
			members[column] = p.GetString(column)
		case slices.Contains(jsonColumns, column):
			members[column] = rawJSON(p.GetString(column))
		case column == collections.PatientPrimaryProvider:
			members["primary_provider_id"] = nil
			if id := p.GetString(column); id != "" {
				members["primary_provider_id"] = collections.Number(id)
			}
		default:
			members["insurance"] = insuranceMember(p)
		}
	}
	return members
}

// rawJSON returns stored JSON, or text of the wrong type if it is damaged.
func rawJSON(text string) any {
	switch {
	case text == "":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return text
}

// contractNames are the contract's names of columns, where they differ.
var contractNames = map[string]string{
	collections.PatientInsurancePayer: "insurance.payer_id", collections.PatientInsuranceMemberID: "insurance.member_id",
	collections.PatientPrimaryProvider: "primary_provider_id", collections.PatientInsuranceDetails: "insurance",
}

// columnOf returns the column of a contract name, and the part of its value; "" for all of it.
func columnOf(name string) (column, inner string) {
	for column, contract := range contractNames {
		if contract == name {
			return column, ""
		}
	}
	column, inner, _ = strings.Cut(name, ".")
	if column == "insurance" {
		column = collections.PatientInsuranceDetails
	}
	return column, inner
}

// contractName returns the contract's name of a column.
func contractName(column string) string { return cmp.Or(contractNames[column], column) }

// uniqueColumns are unique among all patients, including archived and deleted ones.
var uniqueColumns = map[string]struct {
	find      func(core.App, string) (*collections.Patient, error)
	complaint string
}{
	collections.PatientMRN:        {collections.FindPatientByMRN, "A patient with this MRN already exists."},
	collections.PatientGatewayID:  {collections.FindPatientByGatewayID, "A patient with this gateway patient id already exists."},
	collections.PatientExternalID: {collections.FindPatientByExternalID, "A patient with this external id already exists."},
}

// checkReferences reports values that another patient has, and references to missing records.
func checkReferences(app core.App, p *collections.Patient, changed []string, wrong validation.Errors) error {
	for _, column := range changed {
		value := p.GetString(column)
		if value == "" || wrong[column] != nil {
			continue
		}
		complaint, inner, err := "", "", error(nil)
		if rule, ok := uniqueColumns[column]; ok {
			var holder *collections.Patient
			if holder, err = rule.find(app, value); err == nil && holder.Id != p.Id {
				complaint = rule.complaint
			}
		} else if column == collections.PatientPrimaryProvider {
			var user *collections.User
			if user, err = collections.FindUser(app, value); err != nil || !user.Active() || user.Role() != string(authz.Provider) {
				complaint = msgProvider
			}
		} else if column == collections.PatientInsurancePayer && p.InsurancePayerID() != 0 {
			if _, err = app.FindRecordById(collections.Payers, collections.NumberID(p.InsurancePayerID())); err != nil {
				complaint = msgPayer
			}
		} else if second := p.SecondaryPayerID(); column == collections.PatientInsuranceDetails && second != 0 {
			if _, err = app.FindRecordById(collections.Payers, collections.NumberID(second)); err != nil {
				complaint, inner = msgPayer, "secondary.payer_id"
			}
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("check %s: %w", column, err)
		}
		if complaint != "" {
			addProblem(wrong, column, inner, complaint)
		}
	}
	return nil
}

// nextMRN returns the next number of the sequence that no patient has.
func nextMRN(app core.App) (string, error) {
	for {
		n, err := collections.NextValue(app, mrnSequence)
		if err != nil {
			return "", err
		}
		number := fmt.Sprintf("MRN-%08d", n)
		if _, err := collections.FindPatientByMRN(app, number); collections.IsNotFound(err) {
			return number, nil
		} else if err != nil {
			return "", err
		}
	}
}

// updateBlindIndexes sets the blind indexes of changed values.
func updateBlindIndexes(p *collections.Patient, changed []string) error {
	for _, column := range blindIndexed {
		if !slices.Contains(changed, column) {
			continue
		}
		index, err := collections.BlindIndex(column, normalizeForIndex(column, p.GetString(column)))
		if err != nil {
			return fmt.Errorf("index %s: %w", column, err)
		}
		p.SetBlindIndex(column, index)
	}
	return nil
}

// setVersionAndTimes sets version and times, except a time set by the writer.
func setVersionAndTimes(p, stored *collections.Patient, now time.Time) {
	at := collections.FormatInstant(now)
	if stored == nil {
		p.Set(collections.PatientVersion, 1)
		if p.GetString(collections.ColumnCreatedAt) == "" {
			p.Set(collections.ColumnCreatedAt, at)
		}
		p.Set(collections.ColumnUpdatedAt, p.GetString(collections.ColumnCreatedAt))
		return
	}
	p.Set(collections.PatientVersion, stored.Version()+1)
	if p.GetString(collections.ColumnUpdatedAt) == stored.GetString(collections.ColumnUpdatedAt) {
		p.Set(collections.ColumnUpdatedAt, at)
	}
}

// asFault turns validation errors of a save into a fault with the contract's names; other errors are returned unchanged.
func asFault(err error) error {
	var wrong validation.Errors
	if !errors.As(err, &wrong) {
		return err
	}
	fields := fault.Fields{}
	for column, complaint := range wrong {
		if parts, ok := errors.AsType[validation.Errors](complaint); ok {
			for inner, part := range parts {
				fields.Add(contractName(column)+"."+inner, part.Error())
			}
			continue
		}
		message := complaint.Error()
		coded, isCoded := errors.AsType[validation.Error](complaint)
		if rule, ok := uniqueColumns[column]; ok && isCoded && coded.Code() == "validation_not_unique" {
			message = rule.complaint // another process was first: the index decided
		}
		fields.Add(contractName(column), message)
	}
	return fields.Err()
}
