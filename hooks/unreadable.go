package hooks

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/search"

	"github.com/vigilhealth/vigil/collections"
)

// rejectUnreadable refuses to change a record with a value that cannot be opened: derived values and the audit entry would treat it as absent.
func (h *hooks) rejectUnreadable(e *core.RecordEvent) error {
	if err := collections.Readable(e.Record); err != nil && !onlyClosesAccount(e.Record) {
		return err
	}
	return e.Next()
}

// closingColumns disable an account. That must be possible even if a name cannot be opened.
var closingColumns = append(slices.Clone(factorFields), "is_active", core.FieldNameTokenKey, "updated_at")

// onlyClosesAccount reports whether the change of a user only disables access.
func onlyClosesAccount(record *core.Record) bool {
	if record.Collection().Name != collections.Users {
		return false
	}
	return !slices.ContainsFunc(collections.ChangedColumns(record), func(name string) bool { return !slices.Contains(closingColumns, name) })
}

// guardUnreadable reports unreadable records to the dashboard. It would otherwise show null as a value and write it back.
func guardUnreadable(app core.App) {
	request := func(e *core.RecordRequestEvent) error {
		if e.Collection.Name == collections.AuditLog { // old entries may have lost their keys
			return e.Next()
		}
		if err := collections.Readable(e.Record); err != nil {
			return answerUnreadable(e.RequestEvent, err)
		}
		return e.Next()
	}
	app.OnRecordViewRequest().BindFunc(request)
	app.OnRecordUpdateRequest().BindFunc(request)
	app.OnRecordsListRequest().BindFunc(func(e *core.RecordsListRequestEvent) error {
		if e.Collection.Name == collections.AuditLog {
			return e.Next()
		}
		whole, left := collections.ReadableRecords(e.Records)
		if left == 0 {
			return e.Next()
		}
		if err := apis.EnrichRecords(e.RequestEvent, whole); err != nil {
			return e.InternalServerError("Failed to enrich records", err)
		}
		e.Records, e.Result.Items = whole, whole
		if e.Request.URL.Query().Has("fields") { // PocketBase selects fields from its own result type only
			return e.JSON(http.StatusOK, e.Result)
		}
		return e.JSON(http.StatusOK, struct {
			*search.Result
			Unreadable int `json:"unreadable"`
		}{e.Result, left})
	})
	app.OnRecordEnrich().BindFunc(func(e *core.RecordEnrichEvent) error { // also for expanded relations and realtime messages
		record := e.Record               // Next changes e.Record
		if err := e.Next(); err != nil { // unhides all fields for superusers
			return err
		}
		columns := collections.UnreadableColumns(record)
		if record.Collection().Name != collections.AuditLog {
			record.Hide(columns...)
			return nil
		}
		for _, column := range columns {
			record.SetRaw(column, collections.UnreadableText)
		}
		return nil
	})
}

// answerUnreadable returns the API's error body with the members that the dashboard expects.
func answerUnreadable(e *core.RequestEvent, err error) error {
	refused, ok := errors.AsType[*collections.UnreadableError](err)
	if !ok {
		return err
	}
	requestID := e.Response.Header().Get("X-Request-ID")
	if requestID == "" { // PocketBase's own routes have none
		requestID = collections.NewUUID()
		e.Response.Header().Set("X-Request-ID", requestID)
	}
	e.App.Logger().Error("request failed", slog.String("request_id", requestID), slog.Any("error", err))
	return e.JSON(http.StatusServiceUnavailable, map[string]any{
		"status": http.StatusServiceUnavailable, "message": refused.Detail(), "data": map[string]any{},
		"detail": refused.Detail(), "code": collections.UnreadableCode, "request_id": requestID,
	})
}
