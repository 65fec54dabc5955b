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

// A resource that its reader can change has a strong entity tag: a keyed hash of its bytes. The tag changes whenever
// anything shown to this reader changes, and reveals nothing. Source: RFC 9110, 8.8.3 and 13;
// docs/decisions/patients.md, "Entity tags".

// Tagged answers with a value and its tag, or 304 if the caller has this version already.
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
	if MatchesTag(c.Request, tag) {
		c.response.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.Send(status, JSONType, body)
}

// MatchesTag reports whether a read request names the tag of the current version.
func MatchesTag(r *http.Request, tag string) bool {
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	ifNoneMatch := r.Header.Values("If-None-Match")
	return reading && len(ifNoneMatch) > 0 && parseTags(ifNoneMatch).matchesWeakly(tag)
}

func tagOf(body []byte) (string, error) {
	hash, err := collections.BlindIndex("entity tag", string(body))
	return `"` + hash + `"`, err
}

// Conditional reports whether the request has a condition.
func (c *Call) Conditional() bool {
	return len(c.Request.Header.Values("If-Match"))+len(c.Request.Header.Values("If-None-Match")) > 0
}

// CheckCondition rejects a conditional change if the condition fails for the value as shown to the caller now.
func (c *Call) CheckCondition(value any) error {
	body, err := Encode(value)
	if err != nil {
		return fmt.Errorf("encoding the value to change: %w", err)
	}
	tag, err := tagOf(body)
	if err != nil {
		return err
	}
	ifMatch, ifNoneMatch := c.Request.Header.Values("If-Match"), c.Request.Header.Values("If-None-Match")
	if len(ifMatch) > 0 && !parseTags(ifMatch).matchesStrongly(tag) || len(ifNoneMatch) > 0 && parseTags(ifNoneMatch).matchesWeakly(tag) {
		return fault.New(fault.PreconditionFailed, "precondition_failed", "This has been changed since you read it. Read it again.")
	}
	return nil
}

// InTx returns the call in a transaction.
func (c *Call) InTx(tx core.App) *Call {
	inside := *c
	inside.App = tx
	return &inside
}

// tags are the entity tags of a condition: any, or a list, with the weak-only ones separate.
type tags struct {
	any          bool
	strong, weak []string
}

// parseTags parses a list of entity tags. A malformed list matches nothing, so that the conditional change is rejected.
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

// matchesStrongly is the comparison for changes. Source: RFC 9110, 8.8.3.2.
func (t tags) matchesStrongly(tag string) bool { return t.any || slices.Contains(t.strong, tag) }

// matchesWeakly is the comparison for reads.
func (t tags) matchesWeakly(tag string) bool {
	return t.matchesStrongly(tag) || slices.Contains(t.weak, tag)
}

// Source: RFC 7396, section 4.
const mergePatchType = "application/merge-patch+json"

// DecodeMergePatch reads a merge patch of an object into dst. It rejects other JSON patch types, which have another
// meaning.
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
