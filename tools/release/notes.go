package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// releaseVersion is tagged versions. Other versions are trial builds, which need no notes.
var releaseVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$`)

// notes extracts the version's section of the changelog. A tagged version must have a section there and in the upgrade guide.
func (r *release) notes(context.Context) error {
	if !releaseVersion.MatchString(r.version) {
		return nil
	}
	changelog, err := os.ReadFile(filepath.Join(r.top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, found := section(string(changelog), r.version)
	if !found {
		return fmt.Errorf("CHANGELOG.md has no section for %s", r.version)
	}
	upgrading, err := os.ReadFile(filepath.Join(r.top, "docs/upgrading.md"))
	if err != nil {
		return err
	}
	if _, found := section(string(upgrading), r.version); !found {
		return fmt.Errorf("docs/upgrading.md has no section for %s", r.version)
	}
	if err := r.checkExamples(); err != nil {
		return err
	}
	return os.WriteFile(r.file("RELEASE-NOTES.md"), []byte(text), 0o644)
}

// checkExamples refuses a release with deployment examples that name another version.
func (r *release) checkExamples() error {
	image := "registry.example.org/vigil:" + r.version
	for name, words := range map[string][]string{
		"deploy/helm/vigil/Chart.yaml": {"version: " + r.version, "appVersion: " + r.version},
		"deploy/compose.yaml":          {"image: " + image}, "deploy/kubernetes.yaml": {"image: " + image},
	} {
		text, err := os.ReadFile(filepath.Join(r.top, name))
		if err != nil {
			return err
		}
		for _, word := range words {
			if !regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(word) + `(\s|$)`).Match(text) {
				return fmt.Errorf("%s does not name version %s", name, r.version)
			}
		}
	}
	return nil
}

// section returns the text below a version's heading, with or without brackets and date.
func section(page, version string) (text string, found bool) {
	for part := range strings.SplitSeq("\n"+page, "\n## ") {
		heading, rest, _ := strings.Cut(part, "\n")
		if word, _, _ := strings.Cut(heading, " "); strings.Trim(word, "[]") == version {
			return strings.TrimSpace(rest) + "\n", true
		}
	}
	return "", false
}
