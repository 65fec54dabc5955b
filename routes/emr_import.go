package routes

import (
	"context"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// emrImportTimeout limits the EMR queries of an import; patients received in time are stored.
const emrImportTimeout = time.Minute

// importBody is the body of both variants; the name of the id list selects the variant.
type importBody struct {
	PatientIDs       validate.Field[[]validate.String] `json:"patient_ids"`
	EMRPatientIDs    validate.Field[[]validate.String] `json:"emr_patient_ids"`
	AssignToProvider validate.String                   `json:"assign_to_provider"`
	Program          validate.String                   `json:"program"`
}

// importFromEMR answers variant A with 201 and variant B with 200. Source: docs/decisions/patients.md, "Import
// variants".
func (a *api) importFromEMR(c *web.Call, body importBody) error {
	what, asSent, err := a.readImport(c, body)
	if err != nil {
		return err
	}
	if !a.EMR.Client.HasBackendService() && !a.EMR.Client.CanConnect() {
		return fault.State("emr_not_configured", "EMR is not configured.")
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), emrImportTimeout)
	defer cancel()
	done, err := patients.ImportFromEMR(ctx, c.App, a.EMR.Client, what, c.Actor(), c.Now, a.Zone)
	if err != nil {
		return emrFault(err)
	}
	if body.PatientIDs.Sent() {
		return c.Created(viewImportByLocalIDs(done, asSent))
	}
	return c.OK(viewImportByEMRIDs(done, asSent))
}

// readImport validates the body; asSent maps each id to the form in which the caller sent it.
func (a *api) readImport(c *web.Call, body importBody) (what patients.ImportRequest, asSent map[string]string, err error) {
	checks := validate.NewChecks()
	validate.NotNull(checks, "patient_ids", body.PatientIDs)
	validate.NotNull(checks, "emr_patient_ids", body.EMRPatientIDs)
	if err := checks.Err(); err != nil {
		return what, nil, err
	}
	name, list := "patient_ids", body.PatientIDs
	switch {
	case body.PatientIDs.Sent() == body.EMRPatientIDs.Sent():
		return what, nil, fault.Field(fault.NonField, "Give either patient_ids or emr_patient_ids.")
	case body.EMRPatientIDs.Sent():
		name, list = "emr_patient_ids", body.EMRPatientIDs
	}
	what = patients.ImportRequest{Program: patients.DefaultProgram}
	what.EMRIDs, asSent = readEMRIDs(checks, name, list)
	if body.PatientIDs.Sent() {
		if program := checks.Text("program", body.Program, validate.Optional(50)); program != "" {
			what.Program = program
		}
		if who := checks.Text("assign_to_provider", body.AssignToProvider, validate.Optional(254).Identifier()); who != "" {
			provider, err := patients.FindProvider(c.App, who)
			if err != nil {
				return what, nil, err
			}
			if provider == nil {
				checks.Reject("assign_to_provider", "Must be the id or e-mail address of an active provider.")
			} else {
				what.Provider = provider.Id
			}
		}
	}
	return what, asSent, checks.Err()
}

// readEMRIDs returns each id once, without the "Patient/" prefix.
func readEMRIDs(checks *validate.Checks, name string, list validate.Field[[]validate.String]) (ids []string, asSent map[string]string) {
	if list.Given() && len(list.Value) == 0 {
		checks.Reject(name, "This list may not be empty.")
	}
	asSent = map[string]string{}
	for field, sent := range validate.Texts(checks, name, list, patients.MaxImport, "Must be a list of ids.", validate.Required(100).Identifier()) {
		id := strings.TrimPrefix(sent, "Patient/")
		switch {
		case !emr.IsPatientID(id):
			checks.Reject(field, "Must be an id of the EMR, such as Patient/123.")
		case asSent[id] == "":
			asSent[id] = sent
			ids = append(ids, id)
		}
	}
	return ids, asSent
}

// importByLocalIDsView is the answer to patient_ids.
type importByLocalIDsView struct {
	Imported int               `json:"imported"`
	Skipped  int               `json:"skipped"`
	Patients []importedPatient `json:"patients"`
	Details  []skippedPatient  `json:"skipped_details"`
}

type importedPatient struct {
	LocalID string   `json:"local_id"`
	EMRID   string   `json:"emr_id"`
	Name    string   `json:"name"`
	Status  string   `json:"status"`
	LeftOut []string `json:"left_out,omitempty"`
}

type skippedPatient struct {
	EMRID  string `json:"emr_id"`
	Reason string `json:"reason"`
}

func viewImportByLocalIDs(done []patients.ImportResult, asSent map[string]string) importByLocalIDsView {
	answer := importByLocalIDsView{Patients: []importedPatient{}, Details: []skippedPatient{}}
	for _, one := range done {
		if !one.OK {
			answer.Skipped++
			answer.Details = append(answer.Details, skippedPatient{asSent[one.EMRID], one.Reason})
			continue
		}
		answer.Imported++
		answer.Patients = append(answer.Patients, importedPatient{one.PatientID, asSent[one.EMRID], one.Name.FullName(), "imported", one.LeftOut})
	}
	return answer
}

// importByEMRIDsView is the answer to emr_patient_ids.
type importByEMRIDsView struct {
	Imported int            `json:"imported"`
	Skipped  int            `json:"skipped"`
	Errors   int            `json:"errors"`
	Details  []importDetail `json:"details"`
}

type importDetail struct {
	EMRID     string   `json:"emr_id"`
	Status    string   `json:"status"`
	PatientID string   `json:"patient_id,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
}

func viewImportByEMRIDs(done []patients.ImportResult, asSent map[string]string) importByEMRIDsView {
	answer := importByEMRIDsView{Details: make([]importDetail, len(done))}
	for i, one := range done {
		status := "skipped"
		switch {
		case one.OK:
			status = "imported"
			answer.Imported++
		case one.EMRFault:
			answer.Errors++
		default:
			answer.Skipped++
		}
		answer.Details[i] = importDetail{asSent[one.EMRID], status, one.PatientID, one.Reason, one.LeftOut}
	}
	return answer
}
