package warehouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// exportedMembers lists the exported members of each resource type. All others are removed: names, addresses, identifiers, notes, performers.
var exportedMembers = map[string][]string{
	"Device": {"resourceType", "id", "meta", "status", "manufacturer", "modelNumber", "type", "version", "patient"},
	"Flag":   {"resourceType", "id", "meta", "status", "category", "code", "subject", "period"},
	"Observation": {
		"resourceType", "id", "meta", "status", "category", "code", "subject", "effectiveDateTime", "effectivePeriod", "issued", "valueQuantity", "dataAbsentReason", "device",
		"derivedFrom", "component",
	},
	"Patient": {"resourceType", "id", "meta", "active", "gender", "birthDate"},
}

// ndjsonWriter writes resources as NDJSON, in the format of a bulk export.
type ndjsonWriter struct {
	w      io.Writer
	app    core.App
	table  *collections.WarehouseTable
	engine *Engine
	now    time.Time
}

// add writes the resources of rows. It skips resources of deleted patients and resources that cannot be decrypted.
func (nw *ndjsonWriter) add(rows []collections.WarehouseRow) (written int, err error) {
	ids := make([]string, len(rows))
	for i, row := range rows {
		if ids[i] = row.ID; slices.Contains(collections.Numbered, nw.table.Name) {
			ids[i] = strconv.FormatInt(collections.Number(row.ID), 10)
		}
	}
	slices.Sort(ids) // the order of reading
	found, err := nw.engine.options.Resources.ByIDs(nw.app, nw.table.Resource, ids)
	if err != nil {
		return 0, err
	}
	for _, r := range found {
		if r.Unreadable {
			continue
		}
		line, err := nw.engine.pseudonyms.resource(r.Body, nw.now)
		if err != nil {
			return written, err
		}
		if _, err := nw.w.Write(append(line, '\n')); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}

func (nw *ndjsonWriter) finish() error { return nil }

// nouns maps a resource type to the noun that its hashed id is bound to, so that a record has the same id in every format. A Device is not listed
// because its FHIR id differs from the device's row id.
var nouns = map[string]string{"Flag": "alert", "Observation": "observation", "Patient": "patient"}

// resource returns a resource without identifying members.
func (p pseudonymizer) resource(body []byte, now time.Time) ([]byte, error) {
	var r map[string]any
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read a resource: %w", err)
	}
	kind, _ := r["resourceType"].(string)
	maps.DeleteFunc(r, func(name string, _ any) bool { return !slices.Contains(exportedMembers[kind], name) })
	if id, ok := r["id"].(string); ok {
		r["id"] = p.id(cmp.Or(nouns[kind], kind), id)
	}
	if born, ok := r["birthDate"].(string); ok {
		r["birthDate"] = birthYear(born, now)
	}
	if meta, ok := r["meta"].(map[string]any); ok {
		delete(meta, "profile") // the profile requires a name
	}
	p.hashReferences(r)
	return json.Marshal(r)
}

// hashReferences hashes the ids of references and removes free text.
func (p pseudonymizer) hashReferences(at any) {
	switch at := at.(type) {
	case []any:
		for _, one := range at {
			p.hashReferences(one)
		}
	case map[string]any:
		delete(at, "text")
		if _, reference := at["reference"]; reference || at["type"] != nil && at["display"] != nil {
			to, _ := at["reference"].(string)
			clear(at)
			if kind, id, ok := strings.Cut(to, "/"); ok && !strings.HasPrefix(to, "#") {
				at["reference"] = kind + "/" + p.id(cmp.Or(nouns[kind], kind), id)
			}
			return
		}
		for _, one := range at {
			p.hashReferences(one)
		}
	}
}
