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

// refuseUnreadable keeps a record as it is when one of its stored values cannot be opened, whoever saves it: what is written would be derived from
// nothing, and the audit entry would say that nothing was there.
func (h *hooks) refuseUnreadable(e *core.RecordEvent) error {
	if err := collections.Readable(e.Record); err != nil && !closesOnly(e.Record) {
		return err
	}
	return e.Next()
}

// closing are the columns by which an account's doors are shut: that is never put off for a name that cannot be read.
var closing = append(slices.Clone(factorFields), "is_active", core.FieldNameTokenKey, "updated_at")

// closesOnly reports whether nothing of a user changes but what shuts doors.
func closesOnly(record *core.Record) bool {
	if record.Collection().Name != collections.Users {
		return false
	}
	return !slices.ContainsFunc(collections.ChangedColumns(record), func(name string) bool { return !slices.Contains(closing, name) })
}

// guardUnreadable has the dashboard told of records that cannot be read: a null would look like a value, and come back as one.
func guardUnreadable(app core.App) {
	request := func(e *core.RecordRequestEvent) error {
		if e.Collection.Name == collections.AuditLog { // its old entries outlive their keys
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
		if e.Request.URL.Query().Has("fields") { // picked from PocketBase's own form of a list only
			return e.JSON(http.StatusOK, e.Result)
		}
		return e.JSON(http.StatusOK, struct {
			*search.Result
			Unreadable int `json:"unreadable"`
		}{e.Result, left})
	})
	app.OnRecordEnrich().BindFunc(func(e *core.RecordEnrichEvent) error { // expanded relations, and what is sent to subscribers
		record := e.Record               // the event goes on to the next one
		if err := e.Next(); err != nil { // shows superusers everything
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

// answerUnreadable is the contract's answer, with what the dashboard reads beside it.
func answerUnreadable(e *core.RequestEvent, err error) error {
	refused, ok := errors.AsType[*collections.Unreadable](err)
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
