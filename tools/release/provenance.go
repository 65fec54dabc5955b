package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// source is the repository's URL.
const source = "https://github.com/vigilhealth/vigil"

// provenance writes an in-toto statement with SLSA's predicate: the inputs of each file. It is not signed. It documents how to reproduce the
// bytes; the release workflow lets the host sign its own statement over the same files.
func (r *release) provenance(context.Context) error {
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range r.made {
		sum, err := r.digest(name)
		if err != nil {
			return err
		}
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	var names []any
	for _, p := range r.targets {
		names = append(names, p.os+"/"+p.arch)
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.version, "platforms": names, "command": "make release"})
	if err != nil {
		return err
	}
	build := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: source + "/blob/main/docs/releasing.md", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + source, Digest: map[string]string{"gitCommit": r.commit}},
				{Name: "go", Uri: "pkg:golang/toolchain@" + toolchain},
				{Name: "zig", Uri: "pkg:pypi/ziglang@" + zigVersion},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: source + "/blob/main/tools/release"}},
	}
	predicate, err := protojson.Marshal(build)
	if err != nil {
		return err
	}
	statement.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(predicate, statement.Predicate); err != nil {
		return err
	}
	if err := statement.Validate(); err != nil {
		return fmt.Errorf("validate statement: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// protojson varies its spacing on purpose, but two builds must be identical.
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(value, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(r.file("vigil_"+r.version+".intoto.json"), append(text, '\n'), 0o644)
}
