package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// archives packs each program with its licenses, the documents and the files for operators.
func (r *release) archives(ctx context.Context) error {
	common, err := r.commonFiles(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.targets {
		program, err := os.ReadFile(r.program(p))
		if err != nil {
			return err
		}
		folder := fmt.Sprintf("vigil_%s_%s", r.version, p)
		entries := []entry{{path.Join(folder, filepath.Base(r.program(p))), 0o755, program}}
		for _, file := range common {
			entries = append(entries, entry{path.Join(folder, file.name), file.mode, file.data})
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		name, packed := folder+".tar.gz", writeTar
		if p.os == "windows" {
			name, packed = folder+".zip", writeZip
		}
		if err := write(r.file(name), func(out io.Writer) error { return packed(out, entries, r.at) }); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return nil
}

// commonFiles returns the files of every archive besides the program. Only files in git are included.
func (r *release) commonFiles(ctx context.Context) (entries []entry, err error) {
	listed, err := output(ctx, r.top, nil, "git", "ls-files", "-z", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "deploy")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		if strings.HasPrefix(name, "deploy/check/") || strings.HasPrefix(name, "docs/decisions/") {
			continue // for developers, not operators
		}
		data, err := os.ReadFile(filepath.Join(r.top, name))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name, 0o644, data})
	}
	licenses, err := output(ctx, r.top, []string{"GOTOOLCHAIN=" + toolchain, "GOFLAGS="}, "go", "run", "-buildvcs=false", ".", "licenses")
	if err != nil {
		return nil, err
	}
	return append(entries, entry{"THIRD-PARTY-LICENSES.txt", 0o644, []byte(licenses)}), nil
}

// writeTar writes a compressed tar without owner or build time.
func writeTar(out io.Writer, entries []entry, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := pack(compressed, entries, at); err != nil {
		return err
	}
	return compressed.Close()
}

func pack(out io.Writer, entries []entry, at time.Time) error {
	w := tar.NewWriter(out)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	return w.Close()
}

func writeZip(out io.Writer, entries []entry, at time.Time) error {
	w := zip.NewWriter(out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(os.FileMode(e.mode))
		into, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := into.Write(e.data); err != nil {
			return err
		}
	}
	return w.Close()
}

// write creates a file, and removes it after an error.
func write(name string, fill func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := fill(file); err != nil {
		_ = file.Close() // removed below
		_ = os.Remove(name)
		return err
	}
	return file.Close()
}

// digest is the SHA-256 of a release file.
func (r *release) digest(name string) (string, error) {
	file, err := os.Open(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // read-only
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeChecksums writes the checksums of all files in the format of sha256sum.
func (r *release) writeChecksums(context.Context) error {
	var lines []string
	for _, name := range r.made {
		sum, err := r.digest(name)
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
