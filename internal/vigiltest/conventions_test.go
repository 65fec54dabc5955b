package vigiltest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 60
	maxConsoleLine   = 140 // characters
)

// vagueNames are package names that do not describe their content.
var vagueNames = []string{"base", "common", "helper", "helpers", "misc", "model", "models", "types", "util", "utils"}

// machineNames are names of the machine that a change was made on. Each is split, so that this file does not contain it.
var machineNames = []string{
	"proxy.golang" + ".org", "sum.golang" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org",
	"/work" + "/", "shared" + "/",
}

// Every package has a descriptive name and exactly one package comment; files and functions stay within their maximum
// length.
func TestPackageNamesAndSizes(t *testing.T) {
	documented := map[string][]string{} // folder: its files with a package comment
	for name, content := range readTree(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		folder := path.Dir(name)
		if slices.Contains(vagueNames, file.Name.Name) {
			t.Errorf("%s: the name of package %s does not describe its content", name, file.Name.Name)
		}
		documented[folder] = append(documented[folder], checkPackageComment(t, name, file)...)
		if lines := bytes.Count(content, []byte("\n")); lines > maxFileLines {
			t.Errorf("%s: %d lines, more than %d", name, lines, maxFileLines)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first := files.Position(function.Pos()).Line
			if lines := files.Position(function.End()).Line - first + 1; lines > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, more than %d", name, first, function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
	if len(documented) == 0 {
		t.Fatal("no package was found; run the test inside the repository")
	}
	for folder, names := range documented {
		if len(names) != 1 {
			t.Errorf("%s: %d package comments, want one: %v", folder, len(names), names)
		}
	}
}

// A type that hides its content from fmt also hides it from slog, whose JSON handler encodes exported fields instead of formatting.
func TestHiddenTypesDoNotLog(t *testing.T) {
	hidden, logged := map[string]string{}, map[string]bool{}
	for name, content := range readTree(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") {
			continue
		}
		for _, line := range bytes.Split(content, []byte("\n")) {
			if m := methodLine.FindSubmatch(line); m != nil {
				typeName := path.Dir(name) + "." + string(m[1])
				if string(m[2]) == "Format" {
					hidden[typeName] = name
				} else {
					logged[typeName] = true
				}
			}
		}
	}
	if len(hidden) < 20 {
		t.Fatalf("only %d types with a Format method were found", len(hidden))
	}
	for typeName, name := range hidden {
		if !logged[typeName] {
			t.Errorf("%s: %s has Format without LogValue", name, typeName)
		}
	}
}

// methodLine matches the first line of a Format or LogValue method: its type and name.
var methodLine = regexp.MustCompile(`^func \((?:\w+ )?\*?(\w+)\) (Format|LogValue)\(`)

// The map in README.md lists every package of internal/ exactly once, and no others.
func TestReadmeMapIsComplete(t *testing.T) {
	files := readTree(t)
	_, rows, found := bytes.Cut(files["README.md"], []byte("| In `internal/` | What it does |"))
	rows, _, ended := bytes.Cut(rows, []byte("\n\n"))
	if !found || !ended {
		t.Fatal("README.md has no map of internal/")
	}
	onMap := map[string]int{}
	for row := range strings.Lines(string(rows)) {
		if cells := strings.Split(row, "|"); len(cells) == 4 {
			for _, name := range inCode.FindAllStringSubmatch(cells[1], -1) {
				onMap[name[1]]++
			}
		}
	}
	there := map[string]bool{}
	for name := range files {
		if parts := strings.Split(name, "/"); len(parts) > 2 && parts[0] == "internal" && path.Ext(name) == ".go" {
			there[parts[1]] = true
		}
	}
	for name := range there {
		if onMap[name] != 1 {
			t.Errorf("internal/%s is listed in the map of README.md %d times, want once", name, onMap[name])
		}
	}
	for name := range onMap {
		if !there[name] {
			t.Errorf("the map of README.md lists %s, which is not a package", name)
		}
	}
}

// checkPackageComment returns the file's name if it has the package comment, and checks how the comment begins.
func checkPackageComment(t *testing.T, name string, file *ast.File) []string {
	if file.Doc == nil {
		return nil
	}
	start := "Package " + file.Name.Name + " "
	switch {
	case file.Name.Name != "main":
	case path.Dir(name) != ".":
		start = "Command " + path.Base(path.Dir(name)) + " "
	default:
		start = "Vigil "
	}
	if text := file.Doc.Text(); !strings.HasPrefix(text, start) {
		t.Errorf("%s: package comment begins %.30q, want %q", name, text, start)
	}
	return []string{name}
}

// The console has no formatter, so its line length is limited here.
func TestConsoleLineLength(t *testing.T) {
	for name, content := range readTree(t) {
		if !strings.HasPrefix(name, "pb_public/app/") || path.Ext(name) != ".js" {
			continue
		}
		for i, line := range bytes.Split(content, []byte("\n")) {
			if n := utf8.RuneCount(line); n > maxConsoleLine {
				t.Errorf("%s:%d has %d characters, at most %d are allowed", name, i+1, n, maxConsoleLine)
			}
		}
	}
}

// No file names the machine it was made on, or the package mirrors of that machine.
func TestNoMachineNames(t *testing.T) {
	for name, content := range readTree(t) {
		for _, word := range machineNames {
			if at := bytes.Index(content, []byte(word)); at >= 0 {
				t.Errorf("%s:%d: names %q", name, 1+bytes.Count(content[:at], []byte("\n")), word)
			}
		}
	}
}

// readTree reads every text file of the repository, by path from the root.
func readTree(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	top := os.DirFS("../..")
	err := fs.WalkDir(top, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// Ignored by git: installed packages, and the data of a service run here.
			if base := entry.Name(); base == ".git" || base == "node_modules" || strings.HasPrefix(base, "pb_data") {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(top, name)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(content, 0) { // a NUL: not text
			files[name] = content
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
