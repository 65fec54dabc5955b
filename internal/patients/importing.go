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
	// MaxImport bounds the ids of one import. Source: docs/decisions/patients.md, "Import variants".
	MaxImport = 100
	// DefaultProgram is what imported patients are enrolled in when nobody says otherwise.
	DefaultProgram = "rpm"
	// askedTogether is how many patients are asked for at a time; the EMR's pace still holds.
	askedTogether = 8
	// askedFirst is how many are tried before an EMR counts as not there: one record alone may be broken.
	askedFirst = 3
)

// Chart is an EMR as far as an import needs it.
type Chart interface {
	ReadPatient(ctx context.Context, id string) (emr.Patient, error)
}

// Import is what to bring over from the EMR.
type Import struct {
	EMRIDs   []string // without "Patient/", each once
	Provider string   // record id of the primary provider, "" for none
	Program  string
}

// Imported is what became of one id, in the order of [Import.EMRIDs].
type Imported struct {
	EMRID     string
	PatientID string // of who was imported, or was here before; "" for nobody
	Name      Name   // of who was imported
	OK        bool
	Linked    bool // a patient of ours, whom the EMR did not know, is who this is
	// Reason says why nobody was imported; it names no person.
	Reason string
	// Undelivered says that the reason lies with the EMR: it knows nobody of that id, or did not answer.
	Undelivered bool
	// LeftOut are the optional values that the EMR has in a form we do not take.
	LeftOut []string
}

// ImportFrom asks the EMR for each patient who is not here yet, all of them before anything is stored, then stores each in a transaction
// of its own with triage row and audit entry. Asking ends with ctx; storing does not. When the EMR answers for none of
// them the first *emr.Error comes back and nothing is stored. Doing it again imports nobody twice.
// Source: docs/decisions/patients.md, "Import variants".
func ImportFrom(ctx context.Context, app core.App, chart Chart, what Import, by audit.Actor, now time.Time, practice *time.Location) ([]Imported, error) {
	results := make([]Imported, len(what.EMRIDs))
	var missing []int
	for i, id := range what.EMRIDs {
		results[i].EMRID = id
		known, err := already(app, &results[i])
		if err != nil {
			return nil, err
		}
		if !known {
			missing = append(missing, i)
		}
	}
	found, err := fetchAll(ctx, chart, what.EMRIDs, missing)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		if err := found[n].failure; err != nil {
			results[i].Reason, results[i].Undelivered = err.Message+".", true
			continue
		}
		if err := importOne(app, found[n].patient, what, by, now, practice, &results[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// already reports whether a patient of any state has the EMR's id.
func already(app core.App, result *Imported) (bool, error) {
	p, err := collections.FindPatientByExternalID(app, result.EMRID)
	if collections.Missing(err) {
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

// fetchAll asks for the first few one by one: when the EMR cannot be reached for any of them, the others are spared.
func fetchAll(ctx context.Context, chart Chart, ids []string, which []int) ([]fetched, error) {
	found := make([]fetched, len(which))
	var group sync.WaitGroup
	slots := make(chan struct{}, askedTogether)
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
		reached = !unreachable(found[n].failure)
		if !reached && (n+1 == askedFirst || n+1 == len(which)) {
			return nil, found[0].failure
		}
	}
	group.Wait()
	if context.Cause(ctx) != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx) // the caller has left: nobody would hear who was imported
	}
	return found, nil
}

// unreachable reports whether a failure would meet every other patient too: not that of one record.
func unreachable(e *emr.Error) bool {
	if e == nil {
		return false
	}
	return e.Code != emr.CodePatientNotFound && e.Status != http.StatusOK && (e.Status == 0 || e.Status >= 500 ||
		e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusTooManyRequests || e.OAuthError != "")
}

// importOne stores one patient, or says why not.
func importOne(app core.App, found emr.Patient, what Import, by audit.Actor, now time.Time, practice *time.Location, result *Imported) error {
	switch {
	case found.Deceased:
		result.Reason = "The EMR records the patient as deceased."
		return nil
	case found.Retired:
		result.Reason = "The EMR no longer uses this record."
		return nil
	}
	draft, leftOut, lacks := draftOf(found, now, practice)
	if len(lacks) > 0 {
		result.Reason = "The EMR's record has no usable " + strings.Join(lacks, ", ") + "."
		return nil
	}
	if mrn, _ := draft.columns[collections.PatientMRN].(string); mrn != "" {
		holder, err := collections.FindPatientByMRN(app, mrn)
		if err == nil {
			result.Reason = "The MRN belongs to patient " + holder.Id + "."
			if result.Linked, err = linkInstead(app, holder, found, by, now); result.Linked {
				result.PatientID, result.Reason = holder.Id, "Linked to patient "+holder.Id+", who has the same MRN, name and date of birth."
			}
			return err
		}
		if !collections.Missing(err) {
			return err
		}
	}
	draft.columns["programs"] = []string{what.Program}
	if what.Provider != "" {
		draft.columns[collections.PatientPrimaryProvider] = what.Provider
	}
	p, err := create(app, draft, audit.PatientImport, by, now)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.Invalid {
		// Somebody else took the id or the number since we looked.
		if known, err := already(app, result); known || err != nil {
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

// neededOfEMR are the fields without which there is no patient, with the words a person reads.
var neededOfEMR = map[string]string{"first_name": "first name", "last_name": "last name", "date_of_birth": "date of birth", "external_id": "id"}

// draftOf checks the EMR's record as the body of a new patient. Optional values that do not fit are left out and named;
// what is needed and does not fit is named in lacks.
func draftOf(found emr.Patient, now time.Time, practice *time.Location) (draft Draft, leftOut, lacks []string) {
	body := bodyOfEMR(found)
	checks := validate.NewChecks()
	draft = body.Read(checks, now, practice)
	for name := range checks.Fields {
		name, _, _ = strings.Cut(name, ".")
		if words, needed := neededOfEMR[name]; needed {
			lacks = append(lacks, words)
		} else {
			leftOut = append(leftOut, name)
		}
	}
	slices.Sort(lacks)
	slices.Sort(leftOut)
	leftOut = slices.Compact(leftOut)
	if len(lacks) > 0 || len(leftOut) == 0 {
		return draft, nil, lacks
	}
	for name, forget := range map[string]func(){
		"phone":   func() { body.Phone = validate.String{} },
		"email":   func() { body.Email = validate.String{} },
		"address": func() { body.Address = validate.Field[AddressBody]{} },
		"mrn":     func() { body.MRN = validate.String{} },
	} {
		if slices.Contains(leftOut, name) {
			forget()
		}
	}
	return body.Read(validate.NewChecks(), now, practice), leftOut, nil
}

func bodyOfEMR(found emr.Patient) Body {
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
		body.Address = validate.Of(addressOf(*a))
	}
	return body
}

func addressOf(a phi.Address) AddressBody {
	return AddressBody{
		Line1: validate.Of(a.Line1), Line2: validate.Of(a.Line2), City: validate.Of(a.City), State: validate.Of(a.State), Zip: validate.Of(a.Zip),
		Country: validate.Of(a.Country),
	}
}

// FindProvider finds an active provider by public id or e-mail address; nil when there is none.
func FindProvider(app core.App, who string) (*collections.User, error) {
	find, key := collections.FindUserByEmail, strings.ToLower(who)
	if id, err := strconv.ParseInt(who, 10, 64); err == nil && 0 < id && id <= maxNumber {
		find, key = collections.FindUser, collections.NumberID(id)
	}
	user, err := find(app, key)
	if collections.Missing(err) {
		return nil, nil //nolint:nilnil // nobody is an answer
	}
	if err != nil || user.Active() && user.Role() == string(authz.Provider) {
		return user, err
	}
	return nil, nil //nolint:nilnil // nobody is an answer
}
