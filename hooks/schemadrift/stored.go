package schemadrift

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// asMade reports whether a collection stands in the file letter by letter as it was made, with nothing besides, as nearly all do at every start: these
// need not be taken to pieces. One of which it does not say so may be as it was made, too: of what is written in another way, has fields that
// were added by hand, or is more than a base collection, [describe] has to tell.
func asMade(d collections.SchemaRow, wanted Collection) bool {
	if d.Type != core.CollectionTypeBase || d.Options != "{}" {
		return false
	}
	plain := map[string]string{
		"type": strconv.Quote(d.Type), "system": strconv.FormatBool(d.System),
		"listRule": ruleText(d.List), "viewRule": ruleText(d.View), "createRule": ruleText(d.Create), "updateRule": ruleText(d.Update), "deleteRule": ruleText(d.Delete),
	}
	fields := map[string]bool{} // that are still to be found
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

// escaped is JSON in which nothing looks like HTML, as descriptions have it.
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
