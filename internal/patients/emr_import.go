package patients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	// MaxImport limits the ids of one import. Source: docs/decisions/patients.md, "Import variants".
	MaxImport = 100
	// DefaultProgram is the program of imported patients if none is given.
	DefaultProgram = "rpm"
	// concurrentReads is how many patients are requested at the same time; the EMR's rate limit still applies.
	concurrentReads = 8
	// firstReads is how many reads must fail before the EMR counts as unavailable: one record alone may be broken.
	firstReads = 3
)

// EMRReader reads patients from an EMR.
type EMRReader interface {
	ReadPatient(ctx context.Context, id string) (emr.Patient, error)
}

// ImportRequest selects the patients to import.
type ImportRequest struct {
	EMRIDs   []string // without "Patient/", each once
	Provider string   // record id of the primary provider, "" for none
	Program  string
}

// ImportResult is the outcome for one id, in the order of [ImportRequest.EMRIDs].
type ImportResult struct {
	EMRID     string
	PatientID string // the imported or existing patient; "" for none
	Name      Name   // of the imported patient
	OK        bool
	Linked    bool // linked to an existing, unlinked patient
	// Reason explains why no patient was imported; it contains no PHI.
	Reason string
	// EMRFault: the EMR has no such patient or did not answer.
	EMRFault bool
	// LeftOut lists the optional values that were omitted because they are invalid.
	LeftOut []string
}

// ImportFromEMR reads each patient who is not stored yet from the EMR, all of them before anything is stored, then stores each in its own
// transaction with triage row and audit entry. ctx ends the reads, not the storing. If the EMR is unreachable for all of them, the first
// *emr.Error is returned and nothing is stored. Repeating an import creates no duplicates. Source: docs/decisions/patients.md, "Import
// variants".
func ImportFromEMR(ctx context.Context, app core.App, chart EMRReader, what ImportRequest, by audit.Actor, now time.Time, practice *time.Location) ([]ImportResult, error) {
	results := make([]ImportResult, len(what.EMRIDs))
	var missing []int
	for i, id := range what.EMRIDs {
		results[i].EMRID = id
		ok, err := findImported(app, &results[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, i)
		}
	}
	found, err := fetchAll(ctx, chart, what.EMRIDs, missing)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		if err := found[n].failure; err != nil {
			results[i].Reason, results[i].EMRFault = err.Message+".", true
			continue
		}
		if err := importOne(app, found[n].patient, what, by, now, practice, &results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// findImported reports whether a patient of any state has the EMR's id.
func findImported(app core.App, result *ImportResult) (bool, error) {
	p, err := collections.FindPatientByExternalID(app, result.EMRID)
	if collections.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	result.PatientID, result.Reason = p.Id, "Already imported as patient "+p.Id+"."
	return true, nil
}

type fetched struct {
	patient emr.Patient
	failure *emr.Error
}

// fetchAll reads the first few one by one: if the EMR cannot be reached for any of them, the others are skipped.
func fetchAll(ctx context.Context, chart EMRReader, ids []string, which []int) ([]fetched, error) {
	found := make([]fetched, len(which))
	var group sync.WaitGroup
	slots := make(chan struct{}, concurrentReads)
	reached := false
	for n, i := range which {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			p, err := chart.ReadPatient(ctx, ids[i])
			found[n].patient = p
			if err != nil {
				if e, ok := errors.AsType[*emr.Error](err); ok {
					found[n].failure = e
				} else {
					found[n].failure = &emr.Error{Code: emr.CodeUnavailable, Message: "EMR unavailable"}
				}
			}
		})
		if reached {
			continue
		}
		group.Wait()
		reached = !isUnreachable(found[n].failure)
		if !reached && (n+1 == firstReads || n+1 == len(which)) {
			return nil, found[0].failure
		}
	}
	group.Wait()
	if context.Cause(ctx) != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx) // the caller has disconnected and would not get the results
	}
	return found, nil
}

// isUnreachable reports whether a failure would affect every patient, not just one record.
func isUnreachable(e *emr.Error) bool {
	if e == nil {
		return false
	}
	return e.Code != emr.CodePatientNotFound && e.Status != http.StatusOK && (e.Status == 0 || e.Status >= 500 ||
		e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusTooManyRequests || e.OAuthError != "")
}

// importOne stores one patient, or sets the reason why not.
func importOne(app core.App, found emr.Patient, what ImportRequest, by audit.Actor, now time.Time, practice *time.Location, result *ImportResult) error {
	switch {
	case found.Deceased:
		result.Reason = "The EMR records the patient as deceased."
		return nil
	case found.Retired:
		result.Reason = "The EMR no longer uses this record."
		return nil
	}
	draft, leftOut, missing := draftOf(found, now, practice)
	if len(missing) > 0 {
		result.Reason = "The EMR's record has no usable " + strings.Join(missing, ", ") + "."
		return nil
	}
	if mrn, _ := draft.columns[collections.PatientMRN].(string); mrn != "" {
		holder, err := collections.FindPatientByMRN(app, mrn)
		if err == nil {
			result.Reason = "The MRN belongs to patient " + holder.Id + "."
			if result.Linked, err = linkExisting(app, holder, found, by, now); result.Linked {
				result.PatientID, result.Reason = holder.Id, "Linked to patient "+holder.Id+", who has the same MRN, name and date of birth."
			}
			return err
		}
		if !collections.IsNotFound(err) {
			return err
		}
	}
	draft.columns["programs"] = []string{what.Program}
	if what.Provider != "" {
		draft.columns[collections.PatientPrimaryProvider] = what.Provider
	}
	p, err := create(app, draft, audit.PatientImport, by, now)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.Invalid {
		// Another request stored the id or the MRN first.
		if known, err := findImported(app, result); known || err != nil {
			return err
		}
		result.Reason = "The record collides with that of another patient."
		return nil
	}
	if err != nil {
		return fmt.Errorf("import patient: %w", err)
	}
	result.OK, result.PatientID, result.LeftOut = true, p.Id, leftOut
	result.Name = Name{collections.PatientName{MRN: p.MRN(), First: p.FirstName(), Last: p.LastName()}}
	return nil
}

// requiredFromEMR are the required fields, with their names for users.
var requiredFromEMR = map[string]string{"first_name": "first name", "last_name": "last name", "date_of_birth": "date of birth", "external_id": "id"}

// draftOf checks the EMR's record as the body of a new patient. Invalid optional values are omitted
// and listed in leftOut; missing or invalid required ones are listed in missing.
func draftOf(found emr.Patient, now time.Time, practice *time.Location) (draft Draft, leftOut, missing []string) {
	body := bodyFromEMR(found)
	checks := validate.NewChecks()
	draft = body.Read(checks, now, practice)
	for name := range checks.Fields {
		name, _, _ = strings.Cut(name, ".")
		if words, needed := requiredFromEMR[name]; needed {
			missing = append(missing, words)
		} else {
			leftOut = append(leftOut, name)
		}
	}
	slices.Sort(missing)
	slices.Sort(leftOut)
	leftOut = slices.Compact(leftOut)
	if len(missing) > 0 || len(leftOut) == 0 {
		return draft, nil, missing
	}
	for name, omit := range map[string]func(){
		"phone":   func() { body.Phone = validate.String{} },
		"email":   func() { body.Email = validate.String{} },
		"address": func() { body.Address = validate.Field[AddressBody]{} },
		"mrn":     func() { body.MRN = validate.String{} },
	} {
		if slices.Contains(leftOut, name) {
			omit()
		}
	}
	return body.Read(validate.NewChecks(), now, practice), leftOut, nil
}

func bodyFromEMR(found emr.Patient) Body {
	body := Body{
		FirstName: validate.Of(found.Who.FirstName), LastName: validate.Of(found.Who.LastName), DateOfBirth: validate.Of(found.Who.DateOfBirth),
		Gender: validate.Of(found.Gender), ExternalID: validate.Of(found.ID),
	}
	if found.MRN != "" {
		body.MRN = validate.Of(found.MRN)
	}
	if found.Who.Phone != "" {
		body.Phone = validate.Of(found.Who.Phone)
	}
	if found.Who.Email != "" {
		body.Email = validate.Of(found.Who.Email)
	}
	if a := found.Who.Address; a != nil {
		body.Address = validate.Of(addressBodyOf(*a))
	}
	return body
}

func addressBodyOf(a phi.Address) AddressBody {
	return AddressBody{
		Line1: validate.Of(a.Line1), Line2: validate.Of(a.Line2), City: validate.Of(a.City), State: validate.Of(a.State), Zip: validate.Of(a.Zip),
		Country: validate.Of(a.Country),
	}
}

// FindProvider finds an active provider by public id or e-mail address; nil if there is none.
func FindProvider(app core.App, who string) (*collections.User, error) {
	find, key := collections.FindUserByEmail, strings.ToLower(who)
	if id, err := strconv.ParseInt(who, 10, 64); err == nil && 0 < id && id <= maxNumber {
		find, key = collections.FindUser, collections.NumberID(id)
	}
	user, err := find(app, key)
	if collections.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no provider is a valid result
	}
	if err != nil || user.Active() && user.Role() == string(authz.Provider) {
		return user, err
	}
	return nil, nil //nolint:nilnil // no provider is a valid result
}
