package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/google/uuid"
)

// component is a shipped component, as gatherLicenses writes it and `vigil licenses` shows it.
type component struct{ kind, name, version, license, within, texts string }

// columns of the list of components.
var columns = []string{"kind", "name", "version", "license", "within", "texts"}

func (c component) row() []string {
	return []string{c.kind, c.name, c.version, c.license, c.within, c.texts}
}

// components reads the list.
func components(top string) (list []component, err error) {
	file, err := os.Open(filepath.Join(top, licensesFolder, "components.csv"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read-only
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the components: %w", err)
	}
	for _, row := range rows[1:] {
		list = append(list, component{row[0], row[1], row[2], row[3], row[4], row[5]})
	}
	return list, nil
}

// writeSBOM writes a software bill of materials (CycloneDX) for each program: the modules that Go records, and embedded components.
func (r *release) writeSBOM(context.Context) error {
	all, err := components(r.top)
	if err != nil {
		return err
	}
	for _, p := range r.targets {
		generator, err := bin.NewGenerator(r.program(p), bin.WithIncludeStdlib(true), bin.WithVersionOverride("v"+r.version))
		if err != nil {
			return err
		}
		bom, err := generator.Generate()
		if err != nil {
			return fmt.Errorf("components of %s: %w", p, err)
		}
		r.completeSBOM(bom, p, all)
		err = write(r.file(fmt.Sprintf("vigil_%s_%s.cdx.json", r.version, p)), func(out io.Writer) error {
			return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// completeSBOM adds licenses and the components that Go does not record, and fixes values that change with each run.
func (r *release) completeSBOM(bom *cdx.BOM, p platform, all []component) {
	bom.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(source+"/"+r.commit+"/"+r.version+"/"+p.String())).String()
	if bom.Metadata == nil {
		bom.Metadata = &cdx.Metadata{}
	}
	bom.Metadata.Timestamp = r.at.Format(time.RFC3339)
	bom.Metadata.Licenses = &cdx.Licenses{{Expression: "CC0-1.0"}} // of the list itself
	licenses := map[string]string{}
	for _, c := range all {
		licenses[c.name] = c.license
	}
	var direct []string
	if bom.Components == nil {
		bom.Components = &[]cdx.Component{}
	}
	for i := range *bom.Components {
		c := &(*bom.Components)[i]
		if license := licenses[c.Name]; license != "" {
			c.Licenses = &cdx.Licenses{{Expression: license}}
		}
	}
	for _, c := range all {
		if c.kind == "go" || c.kind == "compiler" && cTargets[p.String()] == "" {
			continue
		}
		added := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: c.name, Version: c.version, Licenses: &cdx.Licenses{{Expression: c.license}}}
		added.BOMRef = c.kind + ":" + c.name + "@" + c.version
		switch c.kind {
		case "npm":
			added.PackageURL = "pkg:npm/" + strings.ReplaceAll(url.PathEscape(c.name), "%2F", "/") + "@" + c.version
			added.BOMRef = added.PackageURL
		case "data":
			added.Type = cdx.ComponentTypeData
		}
		if c.within != "" {
			added.Description = "part of " + c.within
		}
		*bom.Components = append(*bom.Components, added)
		direct = append(direct, added.BOMRef)
	}
	main := bom.Metadata.Component
	if main == nil || bom.Dependencies == nil {
		return
	}
	main.Licenses = &cdx.Licenses{{Expression: "Apache-2.0"}}
	for i := range *bom.Dependencies {
		if d := &(*bom.Dependencies)[i]; d.Ref == main.BOMRef {
			if d.Dependencies != nil {
				direct = append(*d.Dependencies, direct...)
			}
			d.Dependencies = &direct
		}
	}
}
