package web

import (
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/sockets"
)

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

func (c *Call) Parse(raw []byte, dst any) error {
	if len(raw) > 0 && !c.sentJSON() {
		return fault.New(fault.UnsupportedMediaType, "unsupported_media_type", "The request body must be application/json.")
	}
	return input.DecodeObject(raw, dst)
}

// Body reads the raw body, up to the row's limit.
func (c *Call) Body() ([]byte, error) {
	if c.Request.ContentLength > c.bodyLimit {
		return nil, tooLarge()
	}
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, c.bodyLimit+1))
	if errors.Is(err, sockets.ErrSlow) {
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
