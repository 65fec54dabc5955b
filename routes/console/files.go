// Package console has the files of the console as they are sent. What `make web` has packed is sent so: without comments, its names and spaces
// short, and as small as brotli makes it. It lies beside the files under the hash of what it was made from, so that a file that has changed since
// is sent as it is. Nothing is done before it is asked for.
package console

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Packed is the folder of what was packed.
const Packed = "vendor/packed"

// types are those of the files that are sent; nothing else is. Source: RFC 9239 for scripts.
var types = map[string]string{
	"": "text/html; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// Files are those of a console.
type Files struct {
	files fs.FS
	known sync.Map // *File by its type and the hash of what it is made from
}

// New has the files of a folder.
func New(files fs.FS) *Files { return &Files{files: files} }

// Sum names content, in letters that a name may begin with: Go embeds no file whose name begins with an underscore.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:12])
}

// Sent reports whether a file is one that is sent.
func Sent(name string) bool {
	_, known := types[path.Ext(name)]
	return known && !strings.HasPrefix(name, Packed+"/")
}

// Find has a file by its name, or fs.ErrNotExist.
func (f *Files) Find(name string) (*File, error) {
	if !fs.ValidPath(name) || !Sent(name) {
		return nil, fs.ErrNotExist
	}
	content, err := fs.ReadFile(f.files, name)
	if err != nil {
		return nil, fs.ErrNotExist // a folder is none, either
	}
	kind, sum := types[path.Ext(name)], Sum(content)
	if known, ok := f.known.Load(kind + sum); ok {
		return known.(*File), nil
	}
	packed, err := fs.ReadFile(f.files, path.Join(Packed, sum+".br"))
	if err != nil {
		packed = nil // whoever builds without npm, or has changed the file since, has the file itself
	}
	known, _ := f.known.LoadOrStore(kind+sum, newFile(kind, sum, content, packed))
	return known.(*File), nil
}
