// Command release makes what a release consists of: programs for each platform, archives, a container image, the list of parts, where it all
// came from, and checksums. Twice from the same commit it makes the same bytes, wherever the folder lies. It also gathers the licenses of what
// is shipped. It publishes nothing and signs nothing. A module of its own: the product needs none of its libraries.
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

// toolchain compiles and packs every release: another patch version of Go makes other bytes.
const toolchain = "go1.27.4"

// platforms are those that a release is built for.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

// release is one version on its way into a folder.
type release struct {
	top, out string
	version  string
	tags     string // of a build with SQLite in C
	commit   string
	at       time.Time // of the commit: nothing in a release is younger
	targets  []platform
	made     []string // names of files in out, in the order in which they were made
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
		return errors.New("say build or licenses")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	top := flags.String("top", "../..", "folder of the source")
	out := flags.String("out", "dist", "folder for what is made, below the source; it is emptied first")
	version := flags.String("version", "", "what git describe says of the commit")
	list := flags.String("platforms", platforms, "what to build for")
	tags := flags.String("tags", "", "what SQLite in C is built with")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return build(ctx, release{top: *top, out: filepath.Join(*top, *out), version: strings.TrimPrefix(*version, "v"), tags: *tags}, *list)
	case "licenses":
		return gather(ctx, *top)
	}
	return fmt.Errorf("there is no %q", args[0])
}

// build makes a release.
func build(ctx context.Context, r release, list string) error {
	if runtime.Version() != toolchain {
		return fmt.Errorf("this is %s, and releases are made with %s: set GOTOOLCHAIN", runtime.Version(), toolchain)
	}
	if r.version == "" || strings.ContainsAny(r.version, "/ ") {
		return fmt.Errorf("%q is no version", r.version)
	}
	for name := range strings.SplitSeq(list, ",") {
		system, arch, found := strings.Cut(name, "/")
		if !found {
			return fmt.Errorf("%q is no platform", name)
		}
		r.targets = append(r.targets, platform{system, arch})
	}
	said, err := output(ctx, r.top, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(said), " ")
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
	for _, step := range []func(context.Context) error{r.whole, r.notes, r.compile, r.archives, r.image, r.parts, r.provenance, r.sums} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return os.RemoveAll(r.stage())
}

// stage is where programs lie until they are packed.
func (r *release) stage() string { return filepath.Join(r.out, "programs") }

// program is the path of a platform's program.
func (r *release) program(p platform) string {
	name := "vigil"
	if p.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.stage(), p.String(), name)
}

// file is the path of a file of the release, which it remembers.
func (r *release) file(name string) string {
	r.made = append(r.made, name)
	return filepath.Join(r.out, name)
}

// whole refuses to release a program without its console, or with licenses that are not those of its parts.
func (r *release) whole(context.Context) error {
	if _, err := os.Stat(filepath.Join(r.top, "pb_public/vendor/preact.js")); err != nil {
		return errors.New("the console's packages are not there: make web, with npm, brings them")
	}
	return nil
}

// compile builds each program.
func (r *release) compile(ctx context.Context) error {
	for _, p := range r.targets {
		env, flags, err := r.settings(ctx, p)
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

// output runs a program in a folder and gives what it printed.
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
