package routes

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// auditView is an entry of the audit trail. Lists name the changed fields; only the single read shows their values.
type auditView struct {
	ID            int64                   `json:"id"`
	RecordedAt    string                  `json:"recorded_at"`
	Event         string                  `json:"event"`
	Action        string                  `json:"action"`
	Outcome       string                  `json:"outcome"`
	ActorType     string                  `json:"actor_type"`
	ActorID       *string                 `json:"actor_id"`
	ActorEmail    *string                 `json:"actor_email"`
	ActorRole     *string                 `json:"actor_role"`
	ActorName     *string                 `json:"actor_name"` // of a machine client
	ResourceType  *string                 `json:"resource_type"`
	ResourceID    *string                 `json:"resource_id"`
	PatientID     *string                 `json:"patient_id"`
	SourceIP      *string                 `json:"source_ip"`
	Client        *string                 `json:"client"`
	RequestID     *string                 `json:"request_id"`
	Reason        *string                 `json:"reason"`
	ChangedFields []string                `json:"changed_fields"`
	Changes       map[string]audit.Change `json:"changes"` // null in lists
	PrevHash      string                  `json:"prev_hash"`
	Hash          string                  `json:"hash"`
}

func viewAudit(e audit.StoredEntry) auditView {
	return auditView{
		ID: e.Number(), RecordedAt: validate.FormatInstant(collections.ParseInstant(e.RecordedAt)), Event: e.Event, Action: e.Action, Outcome: e.Outcome,
		ActorType: e.ActorType, ActorID: orNull(e.ActorID), ActorEmail: orNull(e.ActorEmail), ActorRole: orNull(e.ActorRole), ActorName: orNull(e.ActorName),
		ResourceType: orNull(e.ResourceType), ResourceID: orNull(e.ResourceID), PatientID: orNull(e.Patient), SourceIP: orNull(e.SourceIP),
		Client: orNull(e.Client), RequestID: orNull(e.RequestID), Reason: orNull(e.Reason), ChangedFields: e.Fields(), PrevHash: e.PrevHash, Hash: e.Hash,
	}
}

// recordAudit records that the caller read the audit trail.
func recordAudit(c *web.Call, event audit.Event, resourceID string) error {
	return audit.Append(c.App, audit.Entry{Event: event, Actor: c.Actor(), ResourceType: audit.ResourceAuditEvent, ResourceID: resourceID}, c.Now)
}

func (a *api) listAudit(c *web.Call) error {
	q, p := c.Listing()
	format := q.OneOf("format", "json", "csv")
	between := q.Between()
	filter := audit.Filter{
		Event: q.Text("event", 50), Actor: q.Text("actor", 254), PatientID: q.PatientID(), ResourceType: q.Text("resource_type", 50),
		ResourceID: q.Text("resource_id", 128), Outcome: q.OneOf("outcome", "0", "4", "8", "12"), From: between.From, To: between.To,
	}
	if err := q.Err(); err != nil {
		return err
	}
	if err := recordAudit(c, audit.AuditRead, ""); err != nil {
		return err
	}
	if format == "csv" {
		return a.exportAudit(c, filter)
	}
	page, total, err := audit.List(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, web.Map(page, viewAudit), 0)
}

// exportAudit writes all matching entries, oldest first, without paging.
func (a *api) exportAudit(c *web.Call, filter audit.Filter) error {
	w := c.StartCSV("audit-" + c.Now.In(a.Zone).Format("2006-01-02") + ".csv")
	err := web.WriteSafe(w, "id", "recorded_at", "event", "action", "outcome", "actor_type", "actor_id", "actor_email", "actor_role", "resource_type",
		"resource_id", "patient_id", "source_ip", "client", "request_id", "reason", "changed_fields", "prev_hash", "hash", "actor_name")
	if err != nil {
		return err
	}
	err = audit.Each(c.App, filter, func(e audit.StoredEntry) error {
		return web.WriteSafe(w, strconv.FormatInt(e.Number(), 10), validate.FormatInstant(collections.ParseInstant(e.RecordedAt)), e.Event, e.Action, e.Outcome,
			e.ActorType, e.ActorID, e.ActorEmail, e.ActorRole, e.ResourceType, e.ResourceID, e.Patient, e.SourceIP, e.Client, e.RequestID, e.Reason,
			strings.Join(e.Fields(), ";"), e.PrevHash, e.Hash, e.ActorName)
	})
	w.Flush()
	return cmp.Or(err, w.Error())
}

// readAudit answers with one entry, as FHIR if the query or the Accept header requests it.
func (a *api) readAudit(c *web.Call) error {
	q := c.Query()
	format := q.OneOf("_format", "json", "fhir")
	if err := q.Err(); err != nil {
		return err
	}
	number, err := c.PathInteger("id")
	if err != nil {
		return err
	}
	entry, err := audit.Find(c.App, number)
	if err != nil {
		return fault.OrMissing(err)
	}
	if err := recordAudit(c, audit.AuditRead, strconv.FormatInt(number, 10)); err != nil {
		return err
	}
	if format == "fhir" || format == "" && web.Preferred(c.Request.Header, web.JSONType, fhir.ContentType) == fhir.ContentType {
		body, err := web.Encode(entry.FHIR(a.PublicURL))
		if err != nil {
			return err
		}
		return c.Send(http.StatusOK, fhir.ContentType, body)
	}
	view := viewAudit(entry)
	view.Changes = entry.Changes
	return c.OK(view)
}

// verifiedView is the result of checking the hash chain.
type verifiedView struct {
	Valid          bool    `json:"valid"`
	Checked        int64   `json:"checked"`
	FirstInvalidID *int64  `json:"first_invalid_id"`
	HeadHash       *string `json:"head_hash"`
	Problem        *string `json:"problem"`
}

func (a *api) verifyAudit(c *web.Call) error {
	result, err := audit.Verify(c.App, nil)
	if err != nil {
		return err
	}
	return c.Respond(verifiedView{result.Valid, result.Checked, result.FirstInvalidID, orNull(result.HeadHash), orNull(string(result.Problem))}, recordAudit(c, audit.AuditVerify, ""))
}

// accessView is one access to a patient's record.
type accessView struct {
	ID           int64   `json:"id"`
	RecordedAt   string  `json:"recorded_at"`
	Event        string  `json:"event"`
	Action       string  `json:"action"`
	Outcome      string  `json:"outcome"`
	ActorType    string  `json:"actor_type"`
	ActorID      *string `json:"actor_id"`
	ActorEmail   *string `json:"actor_email"`
	ActorRole    *string `json:"actor_role"`
	ActorName    *string `json:"actor_name"`
	ResourceType *string `json:"resource_type"`
	ResourceID   *string `json:"resource_id"`
	SourceIP     *string `json:"source_ip"`
	Reason       *string `json:"reason"`
}

func (a *api) readAccessLog(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	between := q.Between()
	if err := q.Err(); err != nil {
		return err
	}
	entries, err := audit.PatientAccess(c.App, patient.Id, between.From, between.To)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.AuditRead, audit.ResourcePatient, patient.Id, patient.Id); err != nil {
		return err
	}
	return web.RespondPage(c, p, len(entries), web.Map(web.Cut(p, entries), func(e audit.StoredEntry) accessView {
		v := viewAudit(e)
		view := accessView{
			v.ID, v.RecordedAt, v.Event, v.Action, v.Outcome, v.ActorType, v.ActorID, v.ActorEmail, v.ActorRole, v.ActorName,
			v.ResourceType, v.ResourceID, v.SourceIP, v.Reason,
		}
		if c.Caller.Role == authz.Patient {
			view.hideStaff()
		}
		return view
	}), 0)
}

// hideStaff removes what identifies the staff, and what they wrote: the portal shows roles. The patient's own account and caregivers stay named.
// Source: docs/decisions/roles.md, "Caregivers".
func (v *accessView) hideStaff() {
	v.SourceIP, v.Reason, v.ResourceID = nil, nil, nil
	if v.ActorRole == nil || *v.ActorRole != string(authz.Patient) && *v.ActorRole != auth.CaregiverRole {
		v.ActorID, v.ActorEmail, v.ActorName = nil, nil, nil
	}
}
