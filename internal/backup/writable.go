package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Writable returns an error unless files can be created in the folder, or in the parent where it would be created. It leaves no file behind.
func Writable(folder string) error {
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue // would be created
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
