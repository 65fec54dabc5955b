package web

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Call is one request on its way through a handler.
type Call struct {
	App     core.App
	Request *http.Request

	Caller auth.Caller // zero on rows that ask for no token, unless a valid one came along
	Scope  authz.Scope // how far the caller's permission reaches
	Now    time.Time   // UTC; the only reading of the clock for this request

	RequestID string
	Address   string // the client's, as far as trusted proxies tell; "" when it has none

	response  http.ResponseWriter
	publicURL string
	zone      *time.Location
	bodyLimit int64
	reads     *audit.Group
	once      *once // nil without a key
}

// requestTime bounds the work on one request, reportTime that on a report, an export or a run of the billing.
// Source: docs/decisions/limits.md, "Request size and time".
const (
	requestTime = 30 * time.Second
	reportTime  = time.Minute
	// emrTime is for requests that wait for the EMR, which may take its own timeout for sign-in and answer each.
	emrTime = 90 * time.Second
)

func (r Route) allowance() time.Duration {
	if strings.Contains(r.Path, "/reports/") || strings.Contains(r.Path, "-exports/") || strings.HasSuffix(r.Path, "/billing/run/") {
		return reportTime
	}
	if strings.Contains(r.Path, "/emr/") || strings.HasSuffix(r.Path, "_from_emr/") {
		return emrTime
	}
	return requestTime
}

// door is the whole way of a request: headers, admission, the handler, and the answer to what went wrong.
func (d *Door) door(row Route) func(*core.RequestEvent) error {
	return func(e *core.RequestEvent) error {
		ctx, cancel := context.WithTimeout(e.Request.Context(), row.allowance())
		defer cancel()
		e.Request = e.Request.WithContext(ctx)

		c := d.newCall(e, row)
		defer c.release()
		err := d.serve(c, row)
		if err != nil {
			if d.Refused != nil {
				d.Refused(row, err)
			}
			d.refuse(c, row, c.noteDenied(row, err))
		}
		d.finish(c, err)
		switch {
		case c.Caller.Client != nil:
			e.Set(callerKey, c.Caller.Client.ID)
		case c.Caller.ID != 0:
			e.Set(callerKey, c.Caller.ID)
		}
		return nil // answered: nothing is left for PocketBase's own error form
	}
}

func (d *Door) newCall(e *core.RequestEvent, row Route) *Call {
	limit := int64(maxBody)
	switch {
	case row.Who == authz.SignedByGateway || row.Who == authz.Anyone:
		limit = maxAnonymousBody
	case row.MaxBody > 0:
		limit = row.MaxBody
	}
	if rereadable, ok := e.Request.Body.(*router.RereadableReadCloser); ok {
		e.Request.Body = rereadable.ReadCloser // PocketBase's copy for reading it again, which nobody does here
	}
	return &Call{
		App:       e.App,
		Request:   e.Request,
		Now:       d.Now(),
		RequestID: SetCommonHeaders(e),
		Address:   clientAddress(e),
		response:  e.Response,
		publicURL: d.PublicURL,
		zone:      d.Zone,
		bodyLimit: limit,
		reads:     d.reads,
	}
}

func clientAddress(e *core.RequestEvent) string {
	addr, err := netip.ParseAddr(e.RealIP())
	if err != nil {
		return ""
	}
	return addr.Unmap().String()
}

func (d *Door) serve(c *Call, row Route) (err error) {
	defer recoverPanic(&err)
	if err := d.admit(c, row); err != nil {
		return err
	}
	return d.handle(c, row)
}

// Header is the answer's header, to be changed before answering.
func (c *Call) Header() http.Header { return c.response.Header() }

// PathUUID reads the UUID of the path. Another form is an object that does not exist.
func (c *Call) PathUUID() (string, error) {
	id, ok := validate.ParseUUID(c.Request.PathValue("id"))
	if !ok {
		return "", fault.Missing()
	}
	return id, nil
}

// PathInteger reads a positive integer of the path. Another form is an object that does not exist.
func (c *Call) PathInteger(name string) (int64, error) {
	text := c.Request.PathValue(name)
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || text != strconv.FormatInt(id, 10) {
		return 0, fault.Missing()
	}
	return id, nil
}

func newRequestID() string { return uuid.NewString() }

// The largest bodies, in bytes: of callers who are known by their token, and of others, whose every byte is held in memory before anybody knows what
// it is worth. Source: docs/decisions/limits.md, "Request size and time".
const (
	maxBody          = 1 << 20
	maxAnonymousBody = 64 << 10
)

// Decode reads the body, one JSON object, into dst. Source: docs/decisions/conventions.md, "Content types".
func (c *Call) Decode(dst any) error {
	raw, err := c.Body()
	if err != nil {
		return err
	}
	return c.Parse(raw, dst)
}

// DecodeOptional is decode where the body may be left out; dst then stays as it is.
func (c *Call) DecodeOptional(dst any) error {
	raw, err := c.Body()
	if err != nil || len(raw) == 0 {
		return err
	}
	return c.Parse(raw, dst)
}

// DecodeList reads the list of 1 to most items that the body holds under a name; the items are left to be read one by one.
func (c *Call) DecodeList(name string, most int) ([]jsontext.Value, error) {
	raw, err := c.Body()
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 && !c.sentJSON() {
		return nil, notJSON()
	}
	return validate.DecodeList(raw, name, most)
}

func notJSON() *fault.Error {
	return fault.New(fault.UnsupportedMediaType, "unsupported_media_type", "The request body must be application/json.")
}

func (c *Call) Parse(raw []byte, dst any) error {
	if len(raw) > 0 && !c.sentJSON() {
		return notJSON()
	}
	return validate.DecodeObject(raw, dst)
}

// Body reads the raw body, up to the row's limit.
func (c *Call) Body() ([]byte, error) {
	if c.Request.ContentLength > c.bodyLimit {
		return nil, tooLarge()
	}
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, c.bodyLimit+1))
	if errors.Is(err, ratelimit.ErrSlow) {
		return nil, fault.New(fault.TimedOut, "request_timeout", "The request body took too long.")
	}
	if err != nil { // the sender stopped half way, or framed it wrongly
		return nil, fault.New(fault.Invalid, "parse_error", "The request body could not be read.").Because(err)
	}
	if int64(len(raw)) > c.bodyLimit {
		return nil, tooLarge()
	}
	return raw, nil
}

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "payload_too_large", "The request body is too large.")
}

// sentJSON reports whether the body is declared as JSON in UTF-8, and not compressed.
func (c *Call) sentJSON() bool {
	if encoding := c.Request.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false
	}
	kind, params, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil {
		return false
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	return kind == JSONType || strings.HasSuffix(kind, "+json")
}
