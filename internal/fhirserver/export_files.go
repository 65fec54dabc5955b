package fhirserver

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Extension is that of every file of an export, as its client sees it.
const Extension = ".ndjson"

// On the disk a file is packed, and then sealed: so it can be sent packed as it is, and nobody reads it there.
const sealedExtension = Extension + ".gz.age"

// file is a file that is being written.
type file struct {
	*bufio.Writer
	packed *gzip.Writer
	sealed io.WriteCloser
	disk   *os.File
}

func create(dir, name string, key phi.Text) (*file, error) {
	identity, err := age.ParseX25519Identity(key.Reveal())
	if err != nil {
		return nil, errors.New("the key of an export is none")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of an export: %w", err)
	}
	disk, err := os.OpenFile(filepath.Join(dir, name+sealedExtension), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // a name of ours
	if err != nil {
		return nil, fmt.Errorf("make file of an export: %w", err)
	}
	sealed, err := age.Encrypt(disk, identity.Recipient())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal file of an export: %w", err), disk.Close())
	}
	packed, err := gzip.NewWriterLevel(sealed, gzip.BestSpeed)
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	return &file{Writer: bufio.NewWriterSize(packed, 64<<10), packed: packed, sealed: sealed, disk: disk}, nil
}

// finish completes the file. It is on the disk, and not only on its way there, when it returns.
func (f *file) finish() error {
	err := f.Flush()
	if err == nil {
		err = f.packed.Close()
	}
	if err == nil {
		err = f.sealed.Close()
	}
	if err == nil {
		err = f.disk.Sync()
	}
	return errors.Join(err, f.disk.Close())
}

// abandon leaves the file as it is: its folder is removed as a whole.
func (f *file) abandon() { _ = f.disk.Close() }

// Packed is a file of an export that is being read, packed by gzip.
type Packed struct {
	io.Reader
	disk *os.File
}

// Close ends the reading.
func (p *Packed) Close() error { return p.disk.Close() }

// Open opens a file of an export that was made. name is as its client knows it.
func Open(app core.App, export *collections.Export, name string) (*Packed, collections.ExportFile, error) {
	files, err := export.Files()
	if err != nil {
		return nil, collections.ExportFile{}, err
	}
	at := slices.IndexFunc(files, func(f collections.ExportFile) bool { return f.Name+Extension == name })
	if at < 0 || export.Status() != collections.ExportComplete {
		return nil, collections.ExportFile{}, fault.Missing()
	}
	if err := collections.Readable(export.ProxyRecord()); err != nil {
		return nil, collections.ExportFile{}, err
	}
	identity, err := age.ParseX25519Identity(export.FileKey().Reveal())
	if err != nil {
		return nil, collections.ExportFile{}, errors.New("the key of an export is none")
	}
	disk, err := os.Open(filepath.Join(folder(app, export.Id), files[at].Name+sealedExtension)) // a name of ours
	if errors.Is(err, fs.ErrNotExist) {                                                         // the folder comes from a backup, which has no files of exports
		return nil, files[at], fault.Missing()
	}
	if err != nil {
		return nil, files[at], fmt.Errorf("open file of an export: %w", err)
	}
	packed, err := age.Decrypt(bufio.NewReaderSize(disk, 64<<10), identity)
	if err != nil {
		return nil, files[at], errors.Join(fmt.Errorf("open file of an export: %w", err), disk.Close())
	}
	return &Packed{packed, disk}, files[at], nil
}

// Lines unpacks a file.
func (p *Packed) Lines() (io.Reader, error) { return gzip.NewReader(p) }

func removeFolder(app core.App, id string) error {
	if err := os.RemoveAll(folder(app, id)); err != nil {
		return fmt.Errorf("remove files of an export: %w", err)
	}
	return nil
}

// removeStrays removes files that belong to no export any more.
func (e *BulkExporter) removeStrays(app core.App) error {
	found, err := os.ReadDir(folders(app)) // before the exports: one that begins meanwhile is no stray
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list files of exports: %w", err)
	}
	known, err := collections.ExportIDs(app)
	if err != nil {
		return err
	}
	for _, entry := range found {
		if !slices.Contains(known, entry.Name()) {
			err = errors.Join(err, removeFolder(app, entry.Name()))
		}
	}
	return err
}
