// Package hapi assembles a HAPI FHIR JPA server from its published artifacts and runs it: the EMR of a drill, and the peer
// of the benchmark.
package hapi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// source is the Maven project, relative to the repository root, where both users run.
const source = "e2e/hapi/pom.xml"

// leastJava is the lowest Java version that HAPI FHIR runs on.
const leastJava = 17

// Unavailable is the reason why the server cannot be assembled here. It is not an error of the project.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// Kit is an assembled server.
type Kit struct {
	classPath string
	// Java is the version that runs it.
	Java string
}

// Assemble fetches and compiles the server with Maven into a folder with an absolute path. The error is [Unavailable] when
// Java or Maven is not installed, or Maven cannot download.
func Assemble(ctx context.Context, into string) (Kit, error) {
	java, err := lookForJava(ctx, exec.LookPath)
	if err != nil {
		return Kit{}, err
	}
	list := filepath.Join(into, "classpath")
	out, err := exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet", "--file", source, "-DbuildDirectory="+into,
		"compile", "dependency:build-classpath", "-Dmdep.outputFile="+list).CombinedOutput()
	if err != nil {
		return Kit{}, whyNot(string(out), err)
	}
	fetched, err := os.ReadFile(list)
	if err != nil {
		return Kit{}, err
	}
	return Kit{filepath.Join(into, "classes") + string(os.PathListSeparator) + strings.TrimSpace(string(fetched)), java}, nil
}

// lookForJava returns Java's version when all required programs are installed.
func lookForJava(ctx context.Context, lookPath func(string) (string, error)) (string, error) {
	for _, needed := range []string{"mvn", "javac", "java"} {
		if _, err := lookPath(needed); err != nil {
			return "", Unavailable(fmt.Sprintf("no %s here: a HAPI FHIR server needs Java %d and Maven", needed, leastJava))
		}
	}
	said, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return "", Unavailable(fmt.Sprintf("java -version: %v", err))
	}
	return newEnough(string(said))
}

var javaVersion = regexp.MustCompile(`version "((\d+)[^"]*)"`)

// newEnough parses Java's version output; before Java 9 versions began with "1.".
func newEnough(said string) (string, error) {
	found := javaVersion.FindStringSubmatch(said)
	if found == nil {
		return "", Unavailable("Java does not print its version")
	}
	if major, err := strconv.Atoi(found[2]); err != nil || major < leastJava {
		return "", Unavailable(fmt.Sprintf("Java is %s, but a HAPI FHIR server needs %d", found[1], leastJava))
	}
	return found[1], nil
}

// unfetched matches Maven's messages about artifacts that could not be downloaded.
var unfetched = regexp.MustCompile(`Could not (?:transfer|find|resolve)|could not be resolved|Non-resolvable|in offline mode`)

// whyNot distinguishes unavailable artifacts from errors of the project. The error does not contain Maven's repository
// addresses.
func whyNot(said string, err error) error {
	if unfetched.MatchString(said) {
		return Unavailable("Maven cannot fetch the artifacts of HAPI FHIR here")
	}
	return fmt.Errorf("mvn: %w\n%s", err, said)
}

// Version returns the version of an artifact, or "" if it is not included.
func (k Kit) Version(artifact string) string {
	for _, file := range filepath.SplitList(k.classPath) {
		name := strings.TrimSuffix(filepath.Base(file), ".jar")
		version, found := strings.CutPrefix(name, artifact+"-")
		if found && filepath.Base(filepath.Dir(file)) == version {
			return version
		}
	}
	return ""
}
