package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// manifestName is the file that lists the files written to a folder, so that only those are removed later.
const manifestName = "RENDERED"

// Changes lists the files that were new or different, and those that were removed.
type Changes struct{ Written, Removed []string }

// Write writes the rendered files to a folder and removes files that it wrote before and no longer needs. With dry it only reports the changes.
func Write(folder string, files map[string][]byte, dry bool) (Changes, error) {
	before, err := previousFiles(folder)
	if err != nil {
		return Changes{}, err
	}
	var done Changes
	for _, name := range before {
		if files[name] != nil {
			continue
		}
		done.Removed = append(done.Removed, name)
		if dry {
			continue
		}
		if err := os.Remove(filepath.Join(folder, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, err
		}
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		at := filepath.Join(folder, filepath.FromSlash(name))
		old, err := os.ReadFile(at) //nolint:gosec // a path from the operator
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, err
		}
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		done.Written = append(done.Written, name)
		if dry {
			continue
		}
		if err := writeFile(at, files[name]); err != nil {
			return done, err
		}
	}
	if dry {
		return done, nil
	}
	return done, writeFile(filepath.Join(folder, manifestName), []byte(strings.Join(names, "\n")+"\n"))
}

// previousFiles returns the files written to the folder before. It refuses a folder with other files and no such list.
func previousFiles(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, manifestName)) //nolint:gosec // a path from the operator
	if err == nil {
		names := strings.Fields(string(text))
		for _, name := range names {
			if !filepath.IsLocal(filepath.FromSlash(name)) {
				return nil, fmt.Errorf("%s names %s, which is not in the folder", manifestName, name)
			}
		}
		return names, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s is not empty, and nothing in it was rendered: name another folder", folder)
	}
	return nil, nil
}

// writeFile writes a file atomically, so that a concurrent copy of the folder never contains a partial file.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil { //nolint:gosec // below the operator's folder
		return err
	}
	if err := os.WriteFile(name+".new", content, 0o600); err != nil { //nolint:gosec // as above
		return err
	}
	return os.Rename(name+".new", name) //nolint:gosec // as above
}
