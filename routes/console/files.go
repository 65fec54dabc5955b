// Package console serves the console's files. A file that `make web` has packed is sent minified
// and compressed. A packed file is named by the hash of its source, so a file that has changed
// since then is sent as it is. All work happens on first use.
package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// PackedDir is the folder of packed files.
const PackedDir = "vendor/packed"

// types are the media types of the files that are served; other files are not served. Source: RFC 9239 for scripts.
var types = map[string]string{
	"": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// versioned begins the addresses that a browser caches permanently: /v/<version>/<name>.
const versioned = "v/"

// page is the page that names the other files, by their versioned addresses.
const page = "index.html"

// Files are the files of a console.
type Files struct {
	files   fs.FS
	version func() string
	cached  sync.Map // *File by its type and the hash of its content
}

// New returns the files of a folder. They have one version, the hash of all, read on first use.
func New(files fs.FS) *Files {
	return &Files{files: files, version: sync.OnceValue(func() string { return hashAll(files) })}
}

// hashAll hashes the names and contents of all served files; unreadable ones are not served either.
func hashAll(files fs.FS) string {
	sum := sha256.New()
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !IsServed(name) {
			return nil //nolint:nilerr // see above
		}
		if content, err := fs.ReadFile(files, name); err == nil {
			_, _ = fmt.Fprintf(sum, "%s\x00%s\x00", name, HashName(content))
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// Unversioned returns a file's name without a version, and whether it had the current one: then the
// file may be cached permanently. A page opened before an upgrade requests its other modules by an
// earlier version; it receives the current ones.
func (f *Files) Unversioned(name string) (file string, isCurrent bool) {
	rest, found := strings.CutPrefix(name, versioned)
	version, file, cut := strings.Cut(rest, "/")
	if !found || !cut {
		return name, false
	}
	return file, version == f.version()
}

// withVersions replaces the addresses in the page by versioned ones.
func (f *Files) withVersions(content []byte) []byte {
	for _, start := range []string{"app/", "style/", "vendor/", "boot.js", "favicon.svg"} {
		content = bytes.ReplaceAll(content, []byte(`="/`+start), []byte(`="/`+versioned+f.version()+"/"+start))
	}
	return content
}

// HashName names content by its hash in hexadecimal, since Go embeds no file with a name that begins with an underscore.
func HashName(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:12])
}

// IsServed reports whether a file is served.
func IsServed(name string) bool {
	_, hasType := types[path.Ext(name)]
	return hasType && !strings.HasPrefix(name, PackedDir+"/")
}

// Find returns a file by its name, or fs.ErrNotExist.
func (f *Files) Find(name string) (*File, error) {
	if !fs.ValidPath(name) || !IsServed(name) {
		return nil, fs.ErrNotExist
	}
	content, err := fs.ReadFile(f.files, name)
	if err != nil {
		return nil, fs.ErrNotExist // directories too
	}
	if name == page {
		content = f.withVersions(content)
	}
	kind, sum := types[path.Ext(name)], HashName(content)
	if cached, ok := f.cached.Load(kind + sum); ok {
		return cached.(*File), nil
	}
	packed, err := fs.ReadFile(f.files, path.Join(PackedDir, sum+".br"))
	if err != nil {
		packed = nil // a build without npm, or a file changed since, uses the file itself
	}
	cached, _ := f.cached.LoadOrStore(kind+sum, newFile(kind, sum, content, packed))
	return cached.(*File), nil
}
