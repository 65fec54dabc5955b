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

// rendered lists what was written into a folder, so that what is not wanted any more can be taken away and nothing else.
const rendered = "RENDERED"

// Changes is what a folder lacked, had otherwise or had too much.
type Changes struct{ Written, Removed []string }

// Write brings a folder to what was rendered. Only files that it once wrote are removed; dry changes nothing and says what it would.
func Write(folder string, files map[string][]byte, dry bool) (Changes, error) {
	before, err := listed(folder)
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
		old, err := os.ReadFile(at) //nolint:gosec // the operator names the folder
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
		if err := put(at, files[name]); err != nil {
			return done, err
		}
	}
	if dry {
		return done, nil
	}
	return done, put(filepath.Join(folder, rendered), []byte(strings.Join(names, "\n")+"\n"))
}

// listed is what was written into the folder before. A folder with other people's files and without such a list is left alone.
func listed(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, rendered)) //nolint:gosec // the operator names the folder
	if err == nil {
		names := strings.Fields(string(text))
		for _, name := range names {
			if !filepath.IsLocal(filepath.FromSlash(name)) {
				return nil, fmt.Errorf("%s names %s, which is not in the folder", rendered, name)
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

// put writes a file whole or not at all: what copies the folder away meanwhile never sees half of one.
func put(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil { //nolint:gosec // below the folder that the operator names
		return err
	}
	if err := os.WriteFile(name+".new", content, 0o600); err != nil { //nolint:gosec // as above
		return err
	}
	return os.Rename(name+".new", name) //nolint:gosec // as above
}
