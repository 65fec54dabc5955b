// Command console minifies and compresses the console's files, one by one, and writes them to the folder that the program
// embeds. `make web` runs it.
//
//	go run -C tools/console . ../../pb_public
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/evanw/esbuild/pkg/api"
	"golang.org/x/sync/errgroup"

	"github.com/vigilhealth/vigil/routes/console"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "which folder?")
		os.Exit(2)
	}
	if err := all(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all packs a folder's files and replaces the previous output.
func all(folder string) error {
	target := filepath.Join(folder, filepath.FromSlash(console.PackedDir))
	if err := errors.Join(os.RemoveAll(target), os.MkdirAll(target, 0o755)); err != nil { //nolint:gosec // the console is public
		return err
	}
	var work errgroup.Group
	files := os.DirFS(folder)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !console.IsServed(name) {
			return err
		}
		work.Go(func() error {
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			packed, err := pack(name, content)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(target, console.HashName(content)+".br"), packed, 0o644) //nolint:gosec // the console is public
		})
		return nil
	})
	return errors.Join(err, work.Wait())
}

// loaders are esbuild's loaders for the file types that it can minify.
var loaders = map[string]api.Loader{".js": api.LoaderJS, ".css": api.LoaderCSS}

// pack minifies one file. It stays a separate module. Whitespace in its templates is significant, and only what htm ignores is
// removed. Scripts of packages are already minified and are not processed again.
func pack(name string, content []byte) ([]byte, error) {
	loader, ok := loaders[path.Ext(name)]
	if ok && (loader == api.LoaderCSS || !strings.HasPrefix(name, "vendor/")) {
		made := api.Transform(string(content), api.TransformOptions{
			Loader: loader, Sourcefile: name, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
			MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		})
		if len(made.Errors) > 0 {
			return nil, fmt.Errorf("%s: %s", name, made.Errors[0].Text)
		}
		content = made.Code
		if loader == api.LoaderJS {
			content = []byte(squeeze(relative(name, string(content))))
		}
	}
	return small(content)
}

// relative names the packages in a module by relative paths, so that a module at a versioned address imports packages of its version. The
// source has absolute ones, by which the type checker finds the packages' types.
func relative(name, script string) string {
	return strings.ReplaceAll(script, `"/vendor/`, `"`+strings.Repeat("../", strings.Count(name, "/"))+`vendor/`)
}

func small(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w := brotli.NewWriterLevel(&packed, brotli.BestCompression)
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}
