package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Writable reports whether a folder can take files, or be made; it changes nothing that is there.
func Writable(folder string) error {
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue // it would be made
		}
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "write", Path: at, Err: errors.New("is no folder")}
		}
		if err != nil {
			return err
		}
		file, err := os.CreateTemp(at, ".vigil-check-*")
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
}
