// Package console serves the console's files. If `make web` has packed a file, it sends the packed form: minified and
// compressed and brotli. Packed files are named by the hash of their source, so a file changed since then is sent as
// it is. All work happens on first use.
package console

import (
	"crypto/sha256"
	"encoding/hex"
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

// Files are the files of a console.
type Files struct {
	files  fs.FS
	cached sync.Map // *File by its type and the hash of its content
}

// New returns the files of a folder.
func New(files fs.FS) *Files { return &Files{files: files} }

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
