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

// source is where the commit is found.
const source = "https://github.com/vigilhealth/vigil"

// provenance writes what was made of what, as an in-toto statement with SLSA's predicate. It is not signed: it says how to make the same
// bytes again, and the release's workflow has the host sign one of its own over the same files.
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
	asked, err := structpb.NewStruct(map[string]any{"version": r.version, "platforms": names, "command": "make release"})
	if err != nil {
		return err
	}
	said := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: source + "/blob/main/docs/releasing.md", ExternalParameters: asked,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + source, Digest: map[string]string{"gitCommit": r.commit}},
				{Name: "go", Uri: "pkg:golang/toolchain@" + toolchain},
				{Name: "zig", Uri: "pkg:pypi/ziglang@" + zig},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: source + "/blob/main/tools/release"}},
	}
	predicate, err := protojson.Marshal(said)
	if err != nil {
		return err
	}
	statement.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(predicate, statement.Predicate); err != nil {
		return err
	}
	if err := statement.Validate(); err != nil {
		return fmt.Errorf("the statement: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// The library puts spaces where it likes, so that nobody relies on them; two builds must agree.
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(value, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(r.file("vigil_"+r.version+".intoto.json"), append(text, '\n'), 0o644)
}
