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

// Call is one request and its answer.
type Call struct {
	App     core.App
	Request *http.Request

	Caller auth.Caller // set on rows that require no token only if the request has a valid one
	Reach  authz.Reach // the reach of the caller's permission
	Now    time.Time   // UTC; the request's only reading of the clock

	RequestID string
	Address   string // the client's, as far as trusted proxies report it; "" if unknown

	response  http.ResponseWriter
	publicURL string
	zone      *time.Location
	bodyLimit int64
	reads     *audit.Group
	keyed     *keyedRequest // nil without an idempotency key
	action    authz.Action  // of the row
	lease     Lease         // nil unless the row writes and a lease is required

	staleReads *audit.StaleReads // nil unless the process may not write
}

// requestTimeout limits the work on one request, reportTimeout that on a report, an export or a billing run. Source:
// docs/decisions/limits.md, "Request size and time".
const (
	requestTimeout = 30 * time.Second
	reportTimeout  = time.Minute
	// emrTimeout is for requests that wait for the EMR, which may use its full timeout for the sign-in and for each
	// answer.
	emrTimeout = 90 * time.Second
)

func (r Route) timeout() time.Duration {
	if strings.Contains(r.Path, "/reports/") || strings.Contains(r.Path, "-exports/") || strings.HasSuffix(r.Path, "/billing/run/") {
		return reportTimeout
	}
	if strings.Contains(r.Path, "/emr/") || strings.HasSuffix(r.Path, "_from_emr/") {
		return emrTimeout
	}
	return requestTimeout
}

// entryPoint handles a request from start to end: headers, admission, the handler, and the error answer.
func (s *Server) entryPoint(row Route) func(*core.RequestEvent) error {
	return func(e *core.RequestEvent) error {
		ctx, cancel := context.WithTimeout(e.Request.Context(), row.timeout())
		defer cancel()
		e.Request = e.Request.WithContext(ctx)

		c := s.newCall(e, row)
		defer c.release()
		err := s.serve(c, row)
		if err != nil {
			if s.OnError != nil {
				s.OnError(row, err)
			}
			s.answerError(c, row, c.recordDenied(row, err))
		}
		s.finish(c, err)
		switch {
		case c.Caller.Client != nil:
			e.Set(callerKey, c.Caller.Client.ID)
		case c.Caller.ID != 0:
			e.Set(callerKey, c.Caller.ID)
		}
		return nil // answered already, so that PocketBase adds no error of its own
	}
}

func (s *Server) newCall(e *core.RequestEvent, row Route) *Call {
	limit := int64(maxBody)
	switch {
	case row.Permission == authz.SignedByGateway || row.Permission == authz.Anyone:
		limit = maxAnonymousBody
	case row.MaxBody > 0:
		limit = row.MaxBody
	}
	if rereadable, ok := e.Request.Body.(*router.RereadableReadCloser); ok {
		e.Request.Body = rereadable.ReadCloser // without PocketBase's copy of the body, which no handler uses
	}
	return &Call{
		App:       e.App,
		Request:   e.Request,
		Now:       s.Now(),
		RequestID: SetCommonHeaders(e),
		Address:   clientAddress(e),
		response:  e.Response,
		publicURL: s.PublicURL,
		zone:      s.Zone,
		bodyLimit: limit,
		reads:     s.reads,
	}
}

func clientAddress(e *core.RequestEvent) string {
	addr, err := netip.ParseAddr(e.RealIP())
	if err != nil {
		return ""
	}
	return addr.Unmap().String()
}

func (s *Server) serve(c *Call, row Route) (err error) {
	defer recoverPanic(&err)
	if err := s.admitByLease(c, row); err != nil {
		return err
	}
	if err := s.admit(c, row); err != nil {
		return err
	}
	return s.handle(c, row)
}

// Header returns the response headers; set them before answering.
func (c *Call) Header() http.Header { return c.response.Header() }

// PathUUID reads the UUID of the path. A malformed one is answered as not found.
func (c *Call) PathUUID() (string, error) {
	id, ok := validate.ParseUUID(c.Request.PathValue("id"))
	if !ok {
		return "", fault.Missing()
	}
	return id, nil
}

// PathInteger reads a positive integer of the path. A malformed one is answered as not found.
func (c *Call) PathInteger(name string) (int64, error) {
	text := c.Request.PathValue(name)
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || text != strconv.FormatInt(id, 10) {
		return 0, fault.Missing()
	}
	return id, nil
}

func newRequestID() string { return uuid.NewString() }

// The largest bodies, in bytes, of authenticated callers and of anonymous ones. Bodies are held in memory before they
// are verified. Source: docs/decisions/limits.md, "Request size and time".
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

// DecodeOptional is Decode with an optional body; without one, dst stays unchanged.
func (c *Call) DecodeOptional(dst any) error {
	raw, err := c.Body()
	if err != nil || len(raw) == 0 {
		return err
	}
	return c.Parse(raw, dst)
}

// DecodeList reads the list of 1 to most items under a name of the body; the caller decodes each item.
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
	if errors.Is(err, ratelimit.ErrBodyTimeout) {
		return nil, fault.New(fault.TimedOut, "request_timeout", "The request body took too long.")
	}
	if err != nil { // the client disconnected or framed the body wrongly
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

// sentJSON reports whether the body is declared as uncompressed JSON in UTF-8.
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
