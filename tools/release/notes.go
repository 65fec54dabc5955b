package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// released is a version that a tag names; anything else is a trial, of which nothing need be written yet.
var released = regexp.MustCompile(`^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$`)

// notes takes what the changelog says of this version. A version that is released has to stand there, and with the upgrade's notes.
func (r *release) notes(context.Context) error {
	if !released.MatchString(r.version) {
		return nil
	}
	changelog, err := os.ReadFile(filepath.Join(r.top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, found := section(string(changelog), r.version)
	if !found {
		return fmt.Errorf("CHANGELOG.md says nothing of %s", r.version)
	}
	upgrading, err := os.ReadFile(filepath.Join(r.top, "docs/upgrading.md"))
	if err != nil {
		return err
	}
	if _, found := section(string(upgrading), r.version); !found {
		return fmt.Errorf("docs/upgrading.md says nothing of %s", r.version)
	}
	if err := r.named(); err != nil {
		return err
	}
	return os.WriteFile(r.file("RELEASE-NOTES.md"), []byte(text), 0o644)
}

// named refuses a release whose examples would start another version.
func (r *release) named() error {
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
				return fmt.Errorf("%s is of another version than %s", name, r.version)
			}
		}
	}
	return nil
}

// section is what stands under a version's heading, whatever its brackets and date.
func section(page, version string) (text string, found bool) {
	for part := range strings.SplitSeq("\n"+page, "\n## ") {
		heading, rest, _ := strings.Cut(part, "\n")
		if word, _, _ := strings.Cut(heading, " "); strings.Trim(word, "[]") == version {
			return strings.TrimSpace(rest) + "\n", true
		}
	}
	return "", false
}
