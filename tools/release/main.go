// Command release builds a release: programs for each platform, archives, a container image, software bills of materials, provenance and
// checksums. Building the same commit twice gives identical bytes in any folder. It also collects the licenses of all shipped components. It
// publishes and signs nothing. It is a separate module, because the product needs none of its libraries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// toolchain builds every release: another patch version of Go gives different bytes.
const toolchain = "go1.27.4"

// platforms are the release's targets.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

// release is one version being built.
type release struct {
	top, out string
	version  string
	tags     string // build tags with SQLite in C
	commit   string
	at       time.Time // commit time, the modification time of all files
	targets  []platform
	made     []string // names of files in out, in order of creation
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // the signals end with the process
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("missing command: build or licenses")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	top := flags.String("top", "../..", "folder of the source")
	out := flags.String("out", "dist", "output folder, below the source; it is emptied first")
	version := flags.String("version", "", "output of git describe for the commit")
	list := flags.String("platforms", platforms, "platforms to build for")
	tags := flags.String("tags", "", "build tags with SQLite in C")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return build(ctx, release{top: *top, out: filepath.Join(*top, *out), version: strings.TrimPrefix(*version, "v"), tags: *tags}, *list)
	case "licenses":
		return gatherLicenses(ctx, *top)
	}
	return fmt.Errorf("unknown command %q: use build or licenses", args[0])
}

// build builds a release.
func build(ctx context.Context, r release, list string) error {
	if runtime.Version() != toolchain {
		return fmt.Errorf("this is %s, and releases are made with %s: set GOTOOLCHAIN", runtime.Version(), toolchain)
	}
	if r.version == "" || strings.ContainsAny(r.version, "/ ") {
		return fmt.Errorf("%q is not a version", r.version)
	}
	for name := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(name, "/")
		if !found {
			return fmt.Errorf("%q is not a platform", name)
		}
		r.targets = append(r.targets, platform{system, arch})
	}
	printed, err := output(ctx, r.top, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(printed), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("git's time of the commit: %w", err)
	}
	r.commit, r.at = commit, time.Unix(unix, 0).UTC()
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.checkConsole, r.notes, r.compile, r.archives, r.image, r.writeSBOM, r.provenance, r.writeChecksums} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return os.RemoveAll(r.stage())
}

// stage is the folder of the programs until they are packed.
func (r *release) stage() string { return filepath.Join(r.out, "programs") }

// program is the path of a platform's program.
func (r *release) program(p platform) string {
	name := "vigil"
	if p.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.stage(), p.String(), name)
}

// file returns the path of a release file and adds it to made.
func (r *release) file(name string) string {
	r.made = append(r.made, name)
	return filepath.Join(r.out, name)
}

// checkConsole refuses a build without the console's packages.
func (r *release) checkConsole(context.Context) error {
	if _, err := os.Stat(filepath.Join(r.top, "pb_public/vendor/preact.js")); err != nil {
		return errors.New("the console's packages are missing: run make web, which needs npm")
	}
	return nil
}

// compile builds each program.
func (r *release) compile(ctx context.Context) error {
	for _, p := range r.targets {
		env, flags, err := r.buildSettings(ctx, p)
		if err != nil {
			return err
		}
		target, err := filepath.Abs(r.program(p))
		if err != nil {
			return err
		}
		if _, err := output(ctx, r.top, env, "go", append(append([]string{"build"}, flags...), "-o", target, ".")...); err != nil {
			return fmt.Errorf("for %s: %w", p, err)
		}
	}
	return nil
}

// output runs a program in a folder and returns its standard output.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	printed, err := cmd.Output()
	if err != nil {
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, ended.Stderr)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(printed), nil
}
