package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licensesFolder has the list of components, the license texts by hash, and the manual entries.
const licensesFolder = "cmd/licenses"

// legalFile is the names of files with legal texts.
var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense|third[-_.]?party)([-_.].*)?$`)

// gatherer collects license texts, each once.
type gatherer struct {
	top   string
	texts map[string][]byte // by hash prefix
	list  []component
}

// gatherLicenses writes the list of shipped components with their licenses and license texts.
func gatherLicenses(ctx context.Context, top string) error {
	g := &gatherer{top: top, texts: map[string][]byte{}}
	for _, step := range []func(context.Context) error{g.own, g.modules, g.toolchain, g.packages, g.byHand} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(g.list, func(a, b component) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	folder := filepath.Join(top, licensesFolder, "texts")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for hash, text := range g.texts {
		if err := os.WriteFile(filepath.Join(folder, hash+".txt"), text, 0o644); err != nil {
			return err
		}
	}
	return write(filepath.Join(top, licensesFolder, "components.csv"), func(out io.Writer) error {
		w := csv.NewWriter(out)
		rows := [][]string{columns}
		for _, c := range g.list {
			rows = append(rows, c.row())
		}
		return w.WriteAll(rows)
	})
}

// own adds Vigil itself.
func (g *gatherer) own(context.Context) error {
	c := component{kind: "vigil", name: "vigil"}
	if err := g.read(&c, g.top); err != nil {
		return err
	}
	g.list = append(g.list, c)
	return nil
}

// imported is go list's output for a package.
type imported struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// builds returns the environments of all builds: each platform, with and without SQLite in C.
func builds() (all [][]string) {
	for name := range strings.SplitSeq(platforms, ",") {
		system, arch, _ := strings.Cut(name, "/")
		all = append(all, []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0", "GOFLAGS="})
		if cTargets[system+"_"+arch] != "" {
			all = append(all, []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=1", "GOFLAGS=-tags=sqlite_in_c"})
		}
	}
	return all
}

// modules adds the modules with a package in the program on any platform.
func (g *gatherer) modules(ctx context.Context) error {
	type module struct {
		path, version, dir string
		folders            map[string]bool // of imported packages
	}
	found := map[string]*module{}
	for _, build := range builds() {
		listed, err := output(ctx, g.top, append(build, "GOTOOLCHAIN="+toolchain), "go", "list", "-deps", "-json=Dir,Module", ".")
		if err != nil {
			return err
		}
		for packages := json.NewDecoder(strings.NewReader(listed)); ; {
			var one imported
			if err := packages.Decode(&one); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("output of go list: %w", err)
			}
			if one.Module == nil || one.Module.Main {
				continue
			}
			if found[one.Module.Path] == nil {
				found[one.Module.Path] = &module{one.Module.Path, one.Module.Version, one.Module.Dir, map[string]bool{}}
			}
			// Vendored code has its license in its own or a parent folder.
			for folder := one.Dir; ; folder = filepath.Dir(folder) {
				found[one.Module.Path].folders[folder] = true
				if folder == one.Module.Dir {
					break
				}
			}
		}
	}
	for _, m := range found {
		c := component{kind: "go", name: m.path, version: m.version}
		var folders []string
		for folder := range m.folders {
			folders = append(folders, folder)
		}
		slices.Sort(folders)
		if err := g.read(&c, folders...); err != nil {
			return err
		}
		g.list = append(g.list, c)
	}
	return nil
}

// toolchain adds Go's standard library.
func (g *gatherer) toolchain(ctx context.Context) error {
	root, err := output(ctx, g.top, []string{"GOTOOLCHAIN=" + toolchain}, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	c := component{kind: "std", name: "std", version: toolchain}
	g.list = append(g.list, c)
	return g.read(&g.list[len(g.list)-1], strings.TrimSpace(root))
}

// packages adds the console's npm packages.
func (g *gatherer) packages(context.Context) error {
	raw, err := os.ReadFile(filepath.Join(g.top, "tools/console/package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return fmt.Errorf("package-lock.json: %w", err)
	}
	for where, one := range lock.Packages {
		if where == "" || one.Dev {
			continue
		}
		c := component{kind: "npm", name: strings.TrimPrefix(where, "node_modules/"), version: one.Version}
		if err := g.read(&c, filepath.Join(g.top, "tools/console", where)); err != nil {
			return err
		}
		g.list = append(g.list, c)
	}
	return nil
}

// byHand adds components that no tool finds: data, and third-party code inside other components. Their texts are in the same folder.
func (g *gatherer) byHand(context.Context) error {
	folder := filepath.Join(g.top, licensesFolder, "byhand")
	file, err := os.Open(filepath.Join(folder, "components.csv"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read-only
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return fmt.Errorf("manual components: %w", err)
	}
	for _, row := range rows[1:] {
		text, err := os.ReadFile(filepath.Join(folder, row[5]))
		if err != nil {
			return err
		}
		c := component{row[0], row[1], row[2], row[3], row[4], g.add(text)}
		g.list = append(g.list, c)
	}
	return nil
}

// add stores a text once and returns its name.
func (g *gatherer) add(text []byte) string {
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:6])
	g.texts[name] = text
	return name
}

// read collects the legal texts of folders and identifies their licenses.
func (g *gatherer) read(c *component, folders ...string) error {
	var licenses, texts []string
	for _, folder := range folders {
		files, err := os.ReadDir(folder)
		if err != nil {
			return fmt.Errorf("licenses of %s: %w", c.name, err)
		}
		for _, file := range files {
			if !file.Type().IsRegular() || !legalFile.MatchString(file.Name()) || strings.HasSuffix(file.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, file.Name()))
			if err != nil {
				return err
			}
			if bytes.ContainsRune(text, 0) {
				continue // not a text, for example a logo
			}
			texts = append(texts, g.add(text))
			for _, match := range licensecheck.Scan(text).Match {
				if match.ID == "GooglePatentsFile" {
					match.ID = "LicenseRef-Google-Patents" // has no SPDX id
				}
				if !match.IsURL {
					licenses = append(licenses, match.ID)
				}
			}
		}
	}
	slices.Sort(licenses)
	slices.Sort(texts)
	c.license, c.texts = strings.Join(slices.Compact(licenses), " AND "), strings.Join(slices.Compact(texts), " ")
	return nil
}
