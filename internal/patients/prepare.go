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

// mrnSequence numbers the medical record numbers that we give out.
const mrnSequence = "mrn"

// textColumns and jsonColumns are named in the contract as in the schema; provider and insurance are not.
var (
	textColumns = []string{
		collections.PatientFirstName, collections.PatientLastName, collections.PatientDateOfBirth, collections.PatientGender,
		collections.PatientMRN, collections.PatientPhone, collections.PatientEmail, collections.PatientSSN,
		collections.PatientExternalID, collections.PatientGatewayID, collections.PatientTimeZone,
	}
	jsonColumns    = []string{collections.PatientAddress, collections.PatientICD10Codes, collections.PatientMonitoringSchedule}
	insuranceOwned = []string{collections.PatientInsurancePayer, collections.PatientInsuranceMemberID, collections.PatientInsuranceDetails}

	bodyColumns = slices.Concat(textColumns, jsonColumns, insuranceOwned, []string{collections.PatientPrimaryProvider})
)

// Guard makes a patient's record fit to be stored, whoever writes it, stores it with save, and keeps what must go with it.
// It checks and normalises every value that is new or changed, as [Body.Read] does, gives a new patient a medical record
// number, keeps blind indexes, version and times, and holds the columns of archiving and deleting together; see also
// [afterStored]. It runs in the transaction of the save. What is wrong comes back as [validation.Errors] by column, which
// the dashboard shows beside the input. byHand says that nobody else audits the write: a person in the dashboard made it.
// Source: docs/decisions/patients.md, "MRN" and docs/decisions/security.md, "Lookups on encrypted values".
func Guard(tx core.App, record *core.Record, by audit.Actor, byHand bool, now time.Time, practice *time.Location, save func() error) error {
	p := collections.AsPatient(record)
	stored, err := prepare(tx, p, by, now, practice)
	if err != nil {
		return err
	}
	if err := save(); err != nil {
		return err
	}
	if err := afterStored(tx, p, stored, by, now, practice); err != nil || !byHand {
		return err
	}
	if stored == nil {
		return note(tx, audit.PatientCreate, p, audit.Changes{}, by, now)
	}
	return note(tx, eventOf(stored, p), p, values(stored), by, now)
}

// prepare does what is to be done before the save, and returns what is stored now; nil for a new patient.
func prepare(app core.App, p *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) (stored *collections.Patient, err error) {
	if !p.IsNew() {
		if err := collections.Readable(p.ProxyRecord()); err != nil {
			return nil, err // what cannot be read is not changed, neither itself nor beside it
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
	wrong := normalise(p, changed, now, practice)
	guardState(p, stored, by, now, wrong)
	if err := checkOthers(app, p, changed, wrong); err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if err := reindex(p, changed); err != nil {
		return nil, err
	}
	stamp(p, stored, now)
	return stored, nil
}

// changedColumns are those whose value differs from the stored one; of a new record, all.
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
	if slices.ContainsFunc(insuranceOwned, func(column string) bool { return slices.Contains(changed, column) }) {
		changed = append(changed, insuranceOwned...)
	}
	return changed
}

// normalise reads the changed columns as a body and puts back what was read.
func normalise(p *collections.Patient, changed []string, now time.Time, practice *time.Location) validation.Errors {
	c, wrong := validate.NewChecks(), validation.Errors{}
	draft := bodyOf(p, changed).ReadReplacement(c, now, practice)
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		if column, inner := columnOf(name); slices.Contains(changed, column) {
			complain(wrong, column, inner, c.Fields[name][0])
		}
	}
	for _, column := range changed {
		if value, ok := draft.columns[column]; ok && wrong[column] == nil {
			p.Set(column, value)
		}
	}
	return wrong
}

// complain notes what is wrong with a column, or with a part of what it holds; the first complaint about either counts.
func complain(wrong validation.Errors, column, inner, message string) {
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

// bodyOf is the body that would have led to the values of the given columns.
func bodyOf(p *collections.Patient, changed []string) (body Body) {
	raw, err := json.Marshal(membersOf(p, changed))
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		return Body{} // nothing but required fields, all of which will be missed
	}
	return body
}

// membersOf are the members of such a body.
func membersOf(p *collections.Patient, columns []string) map[string]any {
	members := map[string]any{}
	for _, column := range columns {
		switch {
		case slices.Contains(textColumns, column):
			members[column] = p.GetString(column)
		case slices.Contains(jsonColumns, column):
			members[column] = rawOf(p.GetString(column))
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

// rawOf is stored JSON, or text of the wrong type when it is none.
func rawOf(text string) any {
	switch {
	case text == "":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return text
}

// contractNames are those of the columns that the contract calls something else.
var contractNames = map[string]string{
	collections.PatientInsurancePayer: "insurance.payer_id", collections.PatientInsuranceMemberID: "insurance.member_id",
	collections.PatientPrimaryProvider: "primary_provider_id", collections.PatientInsuranceDetails: "insurance",
}

// columnOf finds the column behind a name of the contract, and which part of it is meant; "" for all of it.
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

// nameOf is the contract's name of a column.
func nameOf(column string) string { return cmp.Or(contractNames[column], column) }

// unique are the columns that no two patients share, archived and deleted ones included.
var unique = map[string]struct {
	find      func(core.App, string) (*collections.Patient, error)
	complaint string
}{
	collections.PatientMRN:        {collections.FindPatientByMRN, "A patient with this MRN already exists."},
	collections.PatientGatewayID:  {collections.FindPatientByGatewayID, "A patient with this gateway patient id already exists."},
	collections.PatientExternalID: {collections.FindPatientByExternalID, "A patient with this external id already exists."},
}

// checkOthers complains about values that another patient holds and about references to nobody.
func checkOthers(app core.App, p *collections.Patient, changed []string, wrong validation.Errors) error {
	for _, column := range changed {
		value := p.GetString(column)
		if value == "" || wrong[column] != nil {
			continue
		}
		complaint, inner, err := "", "", error(nil)
		if rule, ok := unique[column]; ok {
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
			complain(wrong, column, inner, complaint)
		}
	}
	return nil
}

// nextMRN takes the next number of the sequence that nobody holds.
func nextMRN(app core.App) (string, error) {
	for {
		n, err := collections.Next(app, mrnSequence)
		if err != nil {
			return "", err
		}
		number := fmt.Sprintf("MRN-%08d", n)
		if _, err := collections.FindPatientByMRN(app, number); collections.Missing(err) {
			return number, nil
		} else if err != nil {
			return "", err
		}
	}
}

// reindex keeps the blind indexes of changed values.
func reindex(p *collections.Patient, changed []string) error {
	for _, column := range indexed {
		if !slices.Contains(changed, column) {
			continue
		}
		index, err := collections.BlindIndex(column, forIndex(column, p.GetString(column)))
		if err != nil {
			return fmt.Errorf("index %s: %w", column, err)
		}
		p.SetBlindIndex(column, index)
	}
	return nil
}

// stamp keeps version and times; a time that the writer has set stays.
func stamp(p, stored *collections.Patient, now time.Time) {
	at := collections.Instant(now)
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

// asFault turns the complaints of a save into a fault with the names of the contract; other errors stay.
func asFault(err error) error {
	var wrong validation.Errors
	if !errors.As(err, &wrong) {
		return err
	}
	fields := fault.Fields{}
	for column, complaint := range wrong {
		if parts, ok := errors.AsType[validation.Errors](complaint); ok {
			for inner, part := range parts {
				fields.Add(nameOf(column)+"."+inner, part.Error())
			}
			continue
		}
		message := complaint.Error()
		coded, isCoded := errors.AsType[validation.Error](complaint)
		if rule, ok := unique[column]; ok && isCoded && coded.Code() == "validation_not_unique" {
			message = rule.complaint // another process was faster: the index had the last word
		}
		fields.Add(nameOf(column), message)
	}
	return fields.Err()
}
