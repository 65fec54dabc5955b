package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the service's user id in the container, as in deploy/Containerfile.
const user = 65532

// image writes one archive with a container image for each Linux platform, for podman, skopeo and crane. It needs no daemon.
func (r *release) image(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.targets {
		if p.os != "linux" {
			continue
		}
		one, err := r.imageFor(p)
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.os, Architecture: p.arch},
		}})
	}
	// Tools expect one tagged image per archive: an outer index names the index of platforms.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
	}})
	folder := filepath.Join(r.stage(), "image")
	if _, err := layout.Write(folder, named); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	var entries []entry
	err := filepath.WalkDir(folder, func(name string, found os.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		entries = append(entries, entry{filepath.ToSlash(inside), 0o644, data})
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return write(r.file("vigil_"+r.version+"_oci.tar"), func(out io.Writer) error { return pack(out, entries, r.at) })
}

// imageFor returns the image of a platform: the program, the public CA certificates and two writable folders.
func (r *release) imageFor(p platform) (v1.Image, error) {
	files, err := r.imageLayer(p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	with, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.at}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := with.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.at}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/vigil"}, Cmd: []string{"serve", "--http", "0.0.0.0:8090", "--dir", "/data"},
		ExposedPorts: map[string]struct{}{"8090/tcp": {}}, Volumes: map[string]struct{}{"/data": {}}, WorkingDir: "/", StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "Vigil", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.source": source, "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.created": r.at.Format("2006-01-02T15:04:05Z"),
		},
	}
	return mutate.ConfigFile(with, config)
}

// imageLayer returns the only layer as a tar.
func (r *release) imageLayer(p platform) ([]byte, error) {
	program, err := os.ReadFile(r.program(p))
	if err != nil {
		return nil, err
	}
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	license, err := os.ReadFile(filepath.Join(r.top, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, part := range []struct {
		name  string
		mode  int64
		owner int
		data  []byte
	}{
		{"data/", 0o700, user, nil},
		{"etc/", 0o755, 0, nil},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities.Bytes()},
		{"licenses/", 0o755, 0, nil},
		{"licenses/LICENSE", 0o644, 0, license},
		{"tmp/", 0o700, user, nil},
		{"vigil", 0o755, 0, program},
	} {
		header := &tar.Header{Name: part.name, Mode: part.mode, Uid: part.owner, Gid: part.owner, Size: int64(len(part.data)), ModTime: r.at, Format: tar.FormatUSTAR}
		header.Typeflag = tar.TypeReg
		if strings.HasSuffix(part.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(part.data); err != nil {
			return nil, err
		}
	}
	return files.Bytes(), w.Close()
}
