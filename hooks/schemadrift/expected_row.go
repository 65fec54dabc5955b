package schemadrift

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// matchesExpected reports whether a collection's stored row equals the expected one byte by byte, as for nearly all collections at startup, which then need
// not be parsed. A row for which it returns false may still be equivalent: [describe] decides for other encodings, added fields, and auth or view
// collections.
func matchesExpected(d collections.SchemaRow, wanted Collection) bool {
	if d.Type != core.CollectionTypeBase || d.Options != "{}" {
		return false
	}
	plain := map[string]string{
		"type": strconv.Quote(d.Type), "system": strconv.FormatBool(d.System),
		"listRule": ruleText(d.List), "viewRule": ruleText(d.View), "createRule": ruleText(d.Create), "updateRule": ruleText(d.Update), "deleteRule": ruleText(d.Delete),
	}
	fields := map[string]bool{} // expected fields not found yet
	for what, value := range wanted {
		if strings.HasPrefix(what, fieldPrefix) {
			fields[string(value)] = true
			continue
		}
		if text, known := plain[what]; !known || text != string(value) {
			return false
		}
		delete(plain, what)
	}
	var found []json.RawMessage
	if len(plain) > 0 || json.Unmarshal([]byte(d.Fields), &found) != nil {
		return false
	}
	for _, raw := range found {
		field := escaped(raw)
		if !fields[field] {
			return false
		}
		delete(fields, field)
	}
	return len(fields) == 0
}

// escaped escapes HTML in JSON as descriptions do.
func escaped(raw json.RawMessage) string {
	var text bytes.Buffer
	json.HTMLEscape(&text, raw)
	return text.String()
}

func ruleText(rule *string) string {
	text, err := json.Marshal(rule)
	if err != nil {
		return ""
	}
	return string(text)
}
