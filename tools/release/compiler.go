package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// zigVersion is the version of Zig, and compilerRequirements has its hash for each build platform. Zig contains a C compiler for every
// processor and the C library musl, which is linked into the program. A distribution's compiler would give different bytes on each
// distribution.
const (
	zigVersion           = "0.17.1"
	compilerRequirements = "tools/release/compiler.txt"
)

// cTargets are the platforms with SQLite in C, with the C compiler's target name. Other platforms use SQLite translated to Go, because C needs
// their vendors' tools.
var cTargets = map[string]string{"linux_amd64": "x86_64-linux-musl", "linux_arm64": "aarch64-linux-musl"}

// buildSettings returns the environment and flags of Go for a platform. They contain no paths, user flags or state of the build machine.
func (r *release) buildSettings(ctx context.Context, p platform) (env, flags []string, err error) {
	env = []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOTOOLCHAIN=" + toolchain}
	linked := "-s -w -buildid= -X main.version=" + r.version
	flags = []string{"-trimpath", "-buildvcs=false", "-mod=readonly"}
	target := cTargets[p.String()]
	if target == "" {
		return append(env, "CGO_ENABLED=0"), append(flags, "-ldflags", linked), nil
	}
	folder, err := installCompiler(ctx, r.top)
	if err != nil {
		return nil, nil, err
	}
	if r.tags == "" {
		return nil, nil, errors.New("missing -tags: use make release, which sets the tags for SQLite in C")
	}
	env = append(env, "CGO_ENABLED=1", "CC="+filepath.Join(folder, "ziglang", "zig")+" cc -target "+target,
		"CGO_CFLAGS=-O2 -g0", "CGO_CPPFLAGS=", "CGO_LDFLAGS=", "ZIG_GLOBAL_CACHE_DIR="+filepath.Join(folder, "cache"), "ZIG_LOCAL_CACHE_DIR="+filepath.Join(folder, "cache"))
	return env, append(flags, "-tags", r.tags, "-ldflags", linked+" -linkmode external -extldflags -static"), nil
}

// installCompiler returns the folder of the C compiler in the user's cache. pip installs it on first use.
func installCompiler(ctx context.Context, top string) (string, error) {
	wanted, err := os.ReadFile(filepath.Join(top, compilerRequirements))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(string(wanted), "ziglang=="+zigVersion+" ") {
		return "", fmt.Errorf("%s does not require Zig %s", compilerRequirements, zigVersion)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(wanted)
	folder := filepath.Join(cache, "vigil-tools", "zig-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	// Install into a temporary folder first, so an interruption leaves no partial compiler.
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "zig-")
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, top, nil, "python3", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
		"--only-binary=:all:", "--require-hashes", "--target", scratch, "--requirement", compilerRequirements); err != nil {
		return "", errors.Join(fmt.Errorf("install the C compiler for SQLite with pip: %w", err), os.RemoveAll(scratch))
	}
	if err := os.Rename(scratch, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", errors.Join(err, os.RemoveAll(scratch))
	}
	return folder, nil
}
