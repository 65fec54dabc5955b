// Package hapi puts a HAPI FHIR JPA server together from the artifacts that its makers publish, and runs it: the EMR of a drill, and the peer of
// the benchmark.
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

// source is where Maven finds what to put together, from the repository's top, where both who use this run.
const source = "e2e/hapi/pom.xml"

// leastJava is the version that HAPI FHIR runs on.
const leastJava = 17

// Unavailable says why there can be no server here: nothing is wrong with ours.
type Unavailable string

func (u Unavailable) Error() string { return string(u) }

// Kit is a server that was put together.
type Kit struct {
	classPath string
	// Java is the version that runs it.
	Java string
}

// Assemble has Maven fetch and compile the server into a folder, given by its whole path. The error is [Unavailable] where Java or Maven is not
// installed, or Maven fetches nothing.
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

// lookForJava returns Java's version when everything is there that puts the server together and runs it.
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

// newEnough reads what Java says of its version; before 9 that began with "1.".
func newEnough(said string) (string, error) {
	found := javaVersion.FindStringSubmatch(said)
	if found == nil {
		return "", Unavailable("Java does not say which version it is")
	}
	if major, err := strconv.Atoi(found[2]); err != nil || major < leastJava {
		return "", Unavailable(fmt.Sprintf("Java is %s here: a HAPI FHIR server needs %d", found[1], leastJava))
	}
	return found[1], nil
}

// unfetched are Maven's words for what it could not get, the artifacts or what it works with itself.
var unfetched = regexp.MustCompile(`Could not (?:transfer|find|resolve)|could not be resolved|Non-resolvable|in offline mode`)

// whyNot tells artifacts out of reach from a mistake of ours. Where Maven looked for them is nobody's business.
func whyNot(said string, err error) error {
	if unfetched.MatchString(said) {
		return Unavailable("Maven cannot fetch the artifacts of HAPI FHIR here")
	}
	return fmt.Errorf("mvn: %w\n%s", err, said)
}

// Version is that of one of the artifacts, "" of one that is not among them.
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
