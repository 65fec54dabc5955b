package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// runIn runs a program in a folder and returns its output.
func runIn(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, printed)
	}
	return string(printed)
}

// tagged clones this source and adds a commit that releases 9.9.9, and its tag.
func tagged(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "source")
	runIn(t, ".", nil, "git", "clone", "-q", "--no-hardlinks", "../..", folder)
	for name, heading := range map[string]string{"CHANGELOG.md": "## [9.9.9] - 2026-01-02", "docs/upgrading.md": "## 9.9.9"} {
		path := filepath.Join(folder, name)
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(page, "\n%s\n\nNothing to do.\n", heading), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"helm/vigil/Chart.yaml", "compose.yaml", "kubernetes.yaml"} {
		path := filepath.Join(folder, "deploy", name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("1.0.0"), []byte("9.9.9")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	who := []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}
	runIn(t, folder, who, "git", "commit", "-q", "-a", "-m", "a release")
	runIn(t, folder, who, "git", "tag", "v9.9.9")
	return folder
}

// sumsIn returns the hashes of all files of a folder.
func sumsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		found[file.Name()] = hex.EncodeToString(sum[:])
	}
	return found
}

// A release built in two folders, the second time with an empty build cache, is byte-identical.
func TestReleaseIsReproducible(t *testing.T) {
	if os.Getenv("VIGIL_TEST_RELEASE") == "" {
		t.Skip("VIGIL_TEST_RELEASE=1 makes a release twice, which takes a quarter of an hour")
	}
	source := tagged(t)
	var made [2]map[string]string
	var dist string
	for i, folder := range []string{"a", "another/place with a longer name"} {
		clone := filepath.Join(t.TempDir(), folder)
		runIn(t, ".", nil, "git", "clone", "-q", "--no-hardlinks", source, clone)
		var env []string
		if i == 1 {
			env = []string{"GOCACHE=" + t.TempDir(), "TZ=Asia/Tokyo", "LC_ALL=C", "GOAMD64=v3"}
		}
		runIn(t, clone, env, "make", "release", "PLATFORMS="+os.Getenv("VIGIL_RELEASE_PLATFORMS"))
		dist = filepath.Join(clone, "dist")
		made[i] = sumsIn(t, dist)
	}
	for name, sum := range made[0] {
		if made[1][name] != sum {
			t.Errorf("%s is %s the first time and %s the second", name, sum, made[1][name])
		}
	}
	if len(made[0]) != len(made[1]) || len(made[0]) < 6 {
		t.Errorf("%d files and %d", len(made[0]), len(made[1]))
	}
	checkSums(t, dist, made[1])
	checkParts(t, dist)
	checkProvenance(t, dist, made[1])
	checkImage(t, dist)
	if runtime.GOOS == "linux" {
		runReleased(t, dist)
	}
}

// checkSums compares SHA256SUMS with the files.
func checkSums(t *testing.T, dist string, made map[string]string) {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if made[name] != sum {
			t.Errorf("SHA256SUMS has %s for %s", sum, name)
		}
		listed++
	}
	if listed != len(made)-1 {
		t.Errorf("%d of %d files are listed", listed, len(made)-1)
	}
}

// checkParts looks for a module, a console package, a font and their licenses in the bill of materials.
func checkParts(t *testing.T, dist string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(names) == 0 {
		t.Fatal("there is no bill of materials", err)
	}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var bom cdx.BOM
		err = cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bom)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		if main := bom.Metadata.Component; main.Name != "github.com/vigilhealth/vigil" || main.Version != "v9.9.9" {
			t.Errorf("%s is about %s %s", name, main.Name, main.Version)
		}
		want := map[string]string{"github.com/pocketbase/pocketbase": "MIT", "preact": "MIT", "DejaVu Sans Condensed": "Bitstream-Vera AND LicenseRef-PublicDomain", "std": "BSD-3-Clause AND LicenseRef-Google-Patents"}
		for _, part := range *bom.Components {
			if part.Licenses == nil || (*part.Licenses)[0].Expression == "" {
				t.Errorf("%s: %s has no license", name, part.Name)
			} else if want[part.Name] == (*part.Licenses)[0].Expression {
				delete(want, part.Name)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s lacks %v", name, want)
		}
	}
}

func checkProvenance(t *testing.T, dist string, made map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dist, "vigil_9.9.9.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	if err := json.Unmarshal(raw, &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("it is %s with %s", statement.Type, statement.PredicateType)
	}
	for _, subject := range statement.Subject {
		if made[subject.Name] != subject.Digest["sha256"] {
			t.Errorf("the provenance has %s for %s", subject.Digest, subject.Name)
		}
	}
	if len(statement.Predicate.BuildDefinition.ResolvedDependencies) != 3 { // the source, Go, the C compiler
		t.Errorf("it was made of %v", statement.Predicate.BuildDefinition.ResolvedDependencies)
	}
	if len(statement.Subject) != len(made)-2 || len(statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]) != 40 {
		t.Errorf("%d subjects, made of %v", len(statement.Subject), statement.Predicate.BuildDefinition)
	}
}

// checkImage reads the archive as a registry client does.
func checkImage(t *testing.T, dist string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dist, "*_oci.tar"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	images := imagesOf(t, names[0])
	for platform, image := range images {
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/vigil"}) || !slices.Equal(c.Cmd, []string{"serve", "--http", "0.0.0.0:8090", "--dir", "/data"}) || c.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
			t.Errorf("%s: %+v", platform, c)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatal(len(layers), err)
		}
		layer, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]tar.Header{}
		for files := tar.NewReader(layer); ; {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			seen[header.Name] = *header
		}
		if seen["vigil"].Mode != 0o755 || seen["data/"].Uid != 65532 || seen["tmp/"].Uid != 65532 || seen["etc/ssl/certs/ca-certificates.crt"].Size < 100_000 {
			t.Errorf("%s holds %v", platform, seen)
		}
	}
}

// imagesOf unpacks an image archive and returns the images by platform.
func imagesOf(t *testing.T, name string) map[string]v1.Image {
	t.Helper()
	folder := t.TempDir()
	runIn(t, ".", nil, "tar", "-xf", name, "-C", folder)
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	found := map[string]v1.Image{}
	for _, one := range manifest.Manifests {
		if found[one.Platform.String()], err = index.Image(one.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Archives have no owner and no build time.
func TestArchivesAreReproducible(t *testing.T) {
	entries := []entry{{"vigil_1/LICENSE", 0o644, []byte("text")}, {"vigil_1/vigil", 0o755, []byte("program")}}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, packed := range map[string]func(io.Writer, []entry, time.Time) error{"tar": writeTar, "zip": writeZip} {
		var one, two bytes.Buffer
		if err := errors.Join(packed(&one, entries, when), packed(&two, entries, when.In(time.FixedZone("elsewhere", 3600)))); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("two packings as %s differ", name)
		}
		if name == "zip" {
			archive, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
			if err != nil || archive.File[1].Mode() != 0o755 {
				t.Errorf("%v (%v)", archive.File, err)
			}
			continue
		}
		plain, err := gzip.NewReader(&one)
		if err != nil {
			t.Fatal(err)
		}
		header, err := tar.NewReader(plain).Next()
		if err != nil || header.Uid != 0 || header.Uname != "" || !header.ModTime.Equal(when) {
			t.Errorf("%+v (%v)", header, err)
		}
	}
}

// Two images of the same files are identical and complete.
func TestImageIsReproducible(t *testing.T) {
	var sums []string
	for range 2 {
		r := &release{
			top: "../..", out: t.TempDir(), version: "1.2.3", commit: strings.Repeat("a", 40), at: time.Unix(1767225600, 0).UTC(),
			targets: []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"linux", "arm64"}},
		}
		for _, p := range r.targets {
			if err := errors.Join(os.MkdirAll(filepath.Dir(r.program(p)), 0o755), os.WriteFile(r.program(p), []byte("the program for "+p.String()), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.image(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum, err := r.digest(r.made[0])
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		checkImage(t, r.out)
		if images := imagesOf(t, filepath.Join(r.out, r.made[0])); len(images) != 2 || images["linux/arm64"] == nil {
			t.Errorf("images for %v", images)
		}
	}
	if sums[0] != sums[1] {
		t.Error("two images differ")
	}
}

func TestSection(t *testing.T) {
	page := "# Changelog\n\n## [Unreleased]\n\nmore\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- it\n\n## [1.2.30]\n\nother\n"
	if text, found := section(page, "1.2.3"); !found || text != "### Added\n\n- it\n" {
		t.Errorf("%q, %v", text, found)
	}
	if text, found := section(page, "1.2"); found {
		t.Errorf("%q", text)
	}
	for version, is := range map[string]bool{"1.2.3": true, "1.2.3-rc.1": true, "1.2.3-4-gabc": false, "abcdef1": false, "1.2.3-dirty": false} {
		if releaseVersion.MatchString(version) != is {
			t.Errorf("%s is a release: %v", version, !is)
		}
	}
}

// The deployment examples name the release's version.
func TestExamplesMatchVersion(t *testing.T) {
	for version, fits := range map[string]bool{"1.0.0": true, "1.0": false, "1.0.1": false} {
		if err := (&release{top: "../..", version: version}).checkExamples(); (err == nil) != fits {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// Legal texts in a component's folder are found under their usual names, and their license is identified.
func TestLegalTextsAreFound(t *testing.T) {
	mit, err := os.ReadFile("../licenses/byhand/uplot.txt")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string][]byte{"LICENSE.md": mit, "NOTICE": []byte("by the authors"), "license.go": mit, "README.md": mit, "LICENSE-LOGO": {0, 1, 2}} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, c := &gatherer{texts: map[string][]byte{}}, component{name: "it"}
	if err := g.read(&c, folder); err != nil || c.license != "MIT" || len(g.texts) != 2 || len(strings.Fields(c.texts)) != 2 {
		t.Errorf("%+v of %d texts (%v)", c, len(g.texts), err)
	}
}
