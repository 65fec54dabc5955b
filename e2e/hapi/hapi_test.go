package hapi

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewEnough(t *testing.T) {
	for said, want := range map[string]string{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)": "17.0.15",
		"openjdk version \"21\" 2023-09-19":                                                     "21",
		"Picked up JAVA_TOOL_OPTIONS: -Da=b\njava version \"25-ea\"":                            "25-ea",
		`java version "1.8.0_392"`:                                                              "",
		`openjdk version "11.0.2" 2019-01-15`:                                                   "",
		"":                                                                                      "",
	} {
		got, err := newEnough(said)
		if _, unavailable := errors.AsType[Unavailable](err); got != want || unavailable != (want == "") {
			t.Errorf("%q is %q: %v", said, got, err)
		}
	}
}

// A missing program is named.
func TestLookForJava(t *testing.T) {
	for _, missing := range []string{"mvn", "javac", "java"} {
		_, err := lookForJava(t.Context(), func(name string) (string, error) {
			if name == missing {
				return "", exec.ErrNotFound
			}
			return name, nil
		})
		if why, unavailable := errors.AsType[Unavailable](err); !unavailable || !strings.HasPrefix(string(why), "no "+missing+" here") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// Unavailable artifacts are reported without their address; any other failure is an error with all of Maven's output.
func TestWhyNot(t *testing.T) {
	failed := errors.New("exit status 1")
	for said, want := range map[string]bool{
		"[ERROR] Plugin org.apache.maven.plugins:maven-compiler-plugin:3.14.1 or one of its dependencies could not be resolved: x from/to central (https://repo.example)": true,
		"[FATAL] Non-resolvable import POM: Could not transfer artifact ca.uhn.hapi.fhir:hapi-fhir:pom:8.8.0 from/to central (https://repo.example): Connection refused":  true,
		"[ERROR] Could not find artifact ca.uhn.hapi.fhir:hapi-fhir-jpaserver-base:jar:8.8.0 in central (https://repo.example)":                                           true,
		"[ERROR] Cannot access central (https://repo.example) in offline mode and the artifact com.h2database:h2:jar:2.4.240 has not been downloaded from it before":      true,
		"[ERROR] COMPILATION ERROR : \n[ERROR] Hapi.java:[52,5] cannot find symbol\n  symbol: variable strict":                                                            false,
		"[ERROR] Hapi.java:[52,5] cannot access Thing\n  class file for Thing not found":                                                                                  false,
		"": false,
	} {
		err := whyNot(said, failed)
		_, unavailable := errors.AsType[Unavailable](err)
		if unavailable != want || unavailable && strings.Contains(err.Error(), "example") || !unavailable && (!errors.Is(err, failed) || !strings.Contains(err.Error(), said)) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestVersion(t *testing.T) {
	jar := func(group, artifact, version string) string {
		return filepath.Join("home", ".m2", "repository", group, artifact, version, artifact+"-"+version+".jar")
	}
	k := Kit{classPath: strings.Join([]string{
		"classes", jar("ca/uhn/hapi/fhir", "hapi-fhir-base", "8.8.0"), jar("ca/uhn/hapi/fhir", "hapi-fhir-jpaserver-base", "8.9.1"),
		jar("com/h2database", "h2-extra", "1.0"), jar("com/h2database", "h2", "2.4.240"),
	}, string(filepath.ListSeparator))}
	for artifact, want := range map[string]string{"hapi-fhir-jpaserver-base": "8.9.1", "hapi-fhir-base": "8.8.0", "h2": "2.4.240", "jetty": "", "hapi-fhir": ""} {
		if got := k.Version(artifact); got != want {
			t.Errorf("%s is %q, not %q", artifact, got, want)
		}
	}
}

// Await reports the last output of a server that ends.
func TestAwaitEnd(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is not installed")
	}
	s, err := Kit{classPath: t.TempDir()}.Start(t.Context(), Options{Address: "127.0.0.1:1", Database: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Await(t.Context(), "/metadata"); err == nil || !strings.Contains(err.Error(), "Hapi") {
		t.Errorf("a server without classes: %v", err)
	}
	s.Kill() // has no effect
	s.Stop()
}

// Await returns when its context is canceled.
func TestAwaitCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("tired")
	cancel(tired)
	s := &Server{URL: "http://127.0.0.1:1/fhir", ended: make(chan struct{})}
	if err := s.Await(ctx, "/metadata"); !errors.Is(err, tired) {
		t.Errorf("Await returned %v", err)
	}
}
