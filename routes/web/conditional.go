package web

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// An answer that can be changed by its reader has a strong entity tag: a keyed hash of its bytes. So it is another one as soon as anything that
// is shown is another, to this reader, and tells nothing of it. Source: RFC 9110, 8.8.3 and 13; docs/decisions/patients.md, "Entity tags".

// Tagged answers with a value and its tag; or 304 where the caller has that already.
func (c *Call) Tagged(status int, value any) error {
	body, err := Encode(value)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	tag, err := tagOf(body)
	if err != nil {
		return err
	}
	c.Header().Set("ETag", tag)
	if Known(c.Request, tag) {
		c.response.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.Send(status, JSONType, body)
}

// Known reports whether somebody reads what they have already.
func Known(r *http.Request, tag string) bool {
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	known := r.Header.Values("If-None-Match")
	return reading && len(known) > 0 && parseTags(known).weakly(tag)
}

func tagOf(body []byte) (string, error) {
	hash, err := collections.BlindIndex("entity tag", string(body))
	return `"` + hash + `"`, err
}

// Conditional reports whether a change is asked for on a condition.
func (c *Call) Conditional() bool {
	return len(c.Request.Header.Values("If-Match"))+len(c.Request.Header.Values("If-None-Match")) > 0
}

// Hold refuses a change whose condition does not hold of a value as it is shown to the caller now.
func (c *Call) Hold(value any) error {
	body, err := Encode(value)
	if err != nil {
		return fmt.Errorf("encoding what is to be changed: %w", err)
	}
	tag, err := tagOf(body)
	if err != nil {
		return err
	}
	wanted, unwanted := c.Request.Header.Values("If-Match"), c.Request.Header.Values("If-None-Match")
	if len(wanted) > 0 && !parseTags(wanted).strongly(tag) || len(unwanted) > 0 && parseTags(unwanted).weakly(tag) {
		return fault.New(fault.PreconditionFailed, "precondition_failed", "This has been changed since you read it. Read it again.")
	}
	return nil
}

// In is the call in a transaction.
func (c *Call) In(tx core.App) *Call {
	inside := *c
	inside.App = tx
	return &inside
}

// tags are what a condition names: any, or some, of which those that are only weak are kept apart.
type tags struct {
	any          bool
	strong, weak []string
}

// parseTags reads a list of entity tags. What is no list of them names nothing: a change that somebody wants on a condition is not made without.
func parseTags(lines []string) (t tags) {
	text := strings.Trim(strings.Join(lines, ","), " \t")
	if text == "*" {
		return tags{any: true}
	}
	for text != "" {
		if text = strings.TrimLeft(text, ", \t"); text == "" {
			break
		}
		rest, weak := strings.CutPrefix(text, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return tags{}
		}
		end := strings.IndexByte(rest[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(rest[1:end-1], func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return tags{}
		}
		if weak {
			t.weak = append(t.weak, rest[:end])
		} else {
			t.strong = append(t.strong, rest[:end])
		}
		if text = strings.TrimLeft(rest[end:], " \t"); text != "" && text[0] != ',' {
			return tags{}
		}
	}
	return t
}

// strongly compares as a change needs it, weakly as reading does. Source: RFC 9110, 8.8.3.2.
func (t tags) strongly(tag string) bool { return t.any || slices.Contains(t.strong, tag) }
func (t tags) weakly(tag string) bool   { return t.strongly(tag) || slices.Contains(t.weak, tag) }

// mergePatchType is that of a merge patch. Source: RFC 7396, section 4.
const mergePatchType = "application/merge-patch+json"

// DecodeMergePatch reads a merge patch of an object into dst. Other kinds of patches are JSON, too, and mean something else.
func (c *Call) DecodeMergePatch(dst any) error {
	raw, err := c.Body()
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil || kind != mergePatchType && kind != JSONType {
		c.Header().Set("Accept-Patch", mergePatchType+", "+JSONType)
		return fault.New(fault.UnsupportedMediaType, "unsupported_media_type", "The request body must be "+mergePatchType+" or "+JSONType+".")
	}
	return c.Parse(raw, dst)
}
