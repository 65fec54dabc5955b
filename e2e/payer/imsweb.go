package payer

import (
	_ "embed" // the program below
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed Imsweb.java
var imswebProgram []byte

// imswebJars are imsweb's x12-parser with what it needs.
var imswebJars = []string{"com.imsweb:x12-parser:1.13", "com.thoughtworks.xstream:xstream:1.4.15", "xmlpull:xmlpull:1.1.3.1", "xpp3:xpp3_min:1.1.4c"}

// ReadWithImsweb makes imsweb's x12-parser read an 837P, by its own tables of 005010X222. Maven downloads it once, into the user's cache; without Java,
// Maven or the download the test is skipped.
func ReadWithImsweb(t testing.TB, file []byte) (found ReadResult) {
	t.Helper()
	folder := imswebFolder(t)
	dir := t.TempDir()
	program, data := filepath.Join(dir, "Imsweb.java"), filepath.Join(dir, "file.x12")
	for name, content := range map[string][]byte{program: imswebProgram, data: file} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(folder, "*"), program, data)
	var problems strings.Builder
	run.Stderr = &problems
	out, err := run.Output()
	if err != nil {
		t.Fatalf("x12-parser: %v\n%s", err, problems.String())
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if isClaims, _ := fmt.Sscanf(line, "claims %d", &found.Claims); isClaims == 1 {
			continue
		}
		if isLines, _ := fmt.Sscanf(line, "lines %d", &found.Lines); isLines == 0 {
			found.Errors = append(found.Errors, line)
		}
	}
	found.OK = len(found.Errors) == 0 && found.Claims > 0
	return found
}

// imswebFolder returns the folder with the jars.
func imswebFolder(t testing.TB) string {
	t.Helper()
	for _, needed := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed: imsweb's x12-parser is not tested", needed)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder for x12-parser: %v", err)
	}
	folder := filepath.Join(cache, "vigil-tests", "imsweb-x12-parser-1.13")
	for _, jar := range imswebJars {
		name := strings.Split(jar, ":")
		if _, err := os.Stat(filepath.Join(folder, name[1]+"-"+name[2]+".jar")); err == nil {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "mvn", "--batch-mode", "--quiet", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
			"-Dartifact="+jar, "-DoutputDirectory="+folder).CombinedOutput(); err != nil {
			t.Skipf("Maven cannot fetch %s here: %v\n%s", jar, err, out)
		}
	}
	return folder
}
