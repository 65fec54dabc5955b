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

// zig is the version of Zig, and compilers has its hash for each kind of machine that makes releases. It brings a C compiler for every processor
// and the C library that goes into the program, musl: the compiler of a distribution would make other bytes than that of another.
const (
	zig       = "0.17.1"
	compilers = "tools/release/compiler.txt"
)

// inC are the platforms that have SQLite in C, by what the C compiler calls them. Other systems get SQLite's translation to Go: without their makers' own tools nothing in C is built for them.
var inC = map[string]string{"linux_amd64": "x86_64-linux-musl", "linux_arm64": "aarch64-linux-musl"}

// settings are what a platform's program is built with: variables and flags of Go. Nothing of the machine goes into it: no paths, no user's flags,
// no state of the folder.
func (r *release) settings(ctx context.Context, p platform) (env, flags []string, err error) {
	env = []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOTOOLCHAIN=" + toolchain}
	linked := "-s -w -buildid= -X main.version=" + r.version
	flags = []string{"-trimpath", "-buildvcs=false", "-mod=readonly"}
	target := inC[p.String()]
	if target == "" {
		return append(env, "CGO_ENABLED=0"), append(flags, "-ldflags", linked), nil
	}
	folder, err := compiler(ctx, r.top)
	if err != nil {
		return nil, nil, err
	}
	if r.tags == "" {
		return nil, nil, errors.New("say with which tags SQLite is built in C, as make release does")
	}
	env = append(env, "CGO_ENABLED=1", "CC="+filepath.Join(folder, "ziglang", "zig")+" cc -target "+target,
		"CGO_CFLAGS=-O2 -g0", "CGO_CPPFLAGS=", "CGO_LDFLAGS=", "ZIG_GLOBAL_CACHE_DIR="+filepath.Join(folder, "cache"), "ZIG_LOCAL_CACHE_DIR="+filepath.Join(folder, "cache"))
	return env, append(flags, "-tags", r.tags, "-ldflags", linked+" -linkmode external -extldflags -static"), nil
}

// compiler is the folder in the user's cache where the C compiler of this version is, brought by pip if it is not there yet.
func compiler(ctx context.Context, top string) (string, error) {
	wanted, err := os.ReadFile(filepath.Join(top, compilers))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(string(wanted), "ziglang=="+zig+" ") {
		return "", fmt.Errorf("%s is not of Zig %s", compilers, zig)
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
	// Another folder until it is whole: who is interrupted leaves no half of a compiler.
	scratch, err := os.MkdirTemp(filepath.Dir(folder), "zig-")
	if err != nil {
		return "", err
	}
	if _, err := output(ctx, top, nil, "python3", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
		"--only-binary=:all:", "--require-hashes", "--target", scratch, "--requirement", compilers); err != nil {
		return "", errors.Join(fmt.Errorf("the C compiler for SQLite comes as a package of Python, with pip: %w", err), os.RemoveAll(scratch))
	}
	if err := os.Rename(scratch, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", errors.Join(err, os.RemoveAll(scratch))
	}
	return folder, nil
}
