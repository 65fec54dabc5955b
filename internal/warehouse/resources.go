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

// seen are the members of resources that may be seen. Whatever is not named stays here: names, addresses, identifiers, notes, who did it.
var seen = map[string][]string{
	"Device": {"resourceType", "id", "meta", "status", "manufacturer", "modelNumber", "type", "version", "patient"},
	"Flag":   {"resourceType", "id", "meta", "status", "category", "code", "subject", "period"},
	"Observation": {
		"resourceType", "id", "meta", "status", "category", "code", "subject", "effectiveDateTime", "effectivePeriod", "issued", "valueQuantity", "dataAbsentReason", "device",
		"derivedFrom", "component",
	},
	"Patient": {"resourceType", "id", "meta", "active", "gender", "birthDate"},
}

// resourceSheet is a file of resources, one a line, as a bulk export has them.
type resourceSheet struct {
	w      io.Writer
	app    core.App
	table  *collections.WarehouseTable
	engine *Engine
	now    time.Time
}

// add writes the resources of rows. Those of patients who were deleted, and what cannot be opened, are none.
func (s *resourceSheet) add(rows []collections.WarehouseRow) (written int, err error) {
	ids := make([]string, len(rows))
	for i, row := range rows {
		if ids[i] = row.ID; slices.Contains(collections.Numbered, s.table.Name) {
			ids[i] = strconv.FormatInt(collections.Number(row.ID), 10)
		}
	}
	slices.Sort(ids) // in which they are read
	found, err := s.engine.options.Resources.Named(s.app, s.table.Resource, ids)
	if err != nil {
		return 0, err
	}
	for _, r := range found {
		if r.Unreadable {
			continue
		}
		line, err := s.engine.veil.resource(r.Body, s.now)
		if err != nil {
			return written, err
		}
		if _, err := s.w.Write(append(line, '\n')); err != nil {
			return written, err
		}
		written++
	}
	return written, nil
}

func (s *resourceSheet) finish() error { return nil }

// nouns are what ids of resources are of, so that the same record has the same id in every format. FHIR knows a device by another id.
var nouns = map[string]string{"Flag": "alert", "Observation": "observation", "Patient": "patient"}

// resource is a resource as it may be seen.
func (v veil) resource(body []byte, now time.Time) ([]byte, error) {
	var r map[string]any
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read a resource: %w", err)
	}
	kind, _ := r["resourceType"].(string)
	maps.DeleteFunc(r, func(name string, _ any) bool { return !slices.Contains(seen[kind], name) })
	if id, ok := r["id"].(string); ok {
		r["id"] = v.id(cmp.Or(nouns[kind], kind), id)
	}
	if born, ok := r["birthDate"].(string); ok {
		r["birthDate"] = birthYear(born, now)
	}
	if meta, ok := r["meta"].(map[string]any); ok {
		delete(meta, "profile") // which wants a name
	}
	v.references(r)
	return json.Marshal(r)
}

// references hides what resources name, and takes out what people have written.
func (v veil) references(at any) {
	switch at := at.(type) {
	case []any:
		for _, one := range at {
			v.references(one)
		}
	case map[string]any:
		delete(at, "text")
		if _, reference := at["reference"]; reference || at["type"] != nil && at["display"] != nil {
			to, _ := at["reference"].(string)
			clear(at)
			if kind, id, ok := strings.Cut(to, "/"); ok && !strings.HasPrefix(to, "#") {
				at["reference"] = kind + "/" + v.id(cmp.Or(nouns[kind], kind), id)
			}
			return
		}
		for _, one := range at {
			v.references(one)
		}
	}
}
