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

// Extension is the file extension that clients see.
const Extension = ".ndjson"

// sealedExtension is the extension on disk. A file is compressed, then encrypted, so it can be sent compressed without compressing it again.
const sealedExtension = Extension + ".gz.age"

// file is an export file that is being written.
type file struct {
	*bufio.Writer
	compressed *gzip.Writer
	encrypted  io.WriteCloser
	disk       *os.File
}

func create(dir, name string, key phi.Text) (*file, error) {
	identity, err := age.ParseX25519Identity(key.Reveal())
	if err != nil {
		return nil, errors.New("the key of an export is invalid")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create folder of an export: %w", err)
	}
	disk, err := os.OpenFile(filepath.Join(dir, name+sealedExtension), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the name is generated
	if err != nil {
		return nil, fmt.Errorf("create file of an export: %w", err)
	}
	encrypted, err := age.Encrypt(disk, identity.Recipient())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("encrypt file of an export: %w", err), disk.Close())
	}
	compressed, err := gzip.NewWriterLevel(encrypted, gzip.BestSpeed)
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	return &file{Writer: bufio.NewWriterSize(compressed, 64<<10), compressed: compressed, encrypted: encrypted, disk: disk}, nil
}

// finish completes the file and syncs it to disk.
func (f *file) finish() error {
	err := f.Flush()
	if err == nil {
		err = f.compressed.Close()
	}
	if err == nil {
		err = f.encrypted.Close()
	}
	if err == nil {
		err = f.disk.Sync()
	}
	return errors.Join(err, f.disk.Close())
}

// abandon closes an incomplete file; the caller removes its folder.
func (f *file) abandon() { _ = f.disk.Close() }

// CompressedFile reads an export file in gzip form.
type CompressedFile struct {
	io.Reader
	disk *os.File
}

// Close closes the file.
func (f *CompressedFile) Close() error { return f.disk.Close() }

// OpenFile opens a file of a finished export by the name that clients see.
func OpenFile(app core.App, export *collections.Export, name string) (*CompressedFile, collections.ExportFile, error) {
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
		return nil, collections.ExportFile{}, errors.New("the key of an export is invalid")
	}
	disk, err := os.Open(filepath.Join(exportFolder(app, export.Id), files[at].Name+sealedExtension)) // the name is generated
	if errors.Is(err, fs.ErrNotExist) {                                                               // the database was restored from a backup, which omits export files
		return nil, files[at], fault.Missing()
	}
	if err != nil {
		return nil, files[at], fmt.Errorf("open file of an export: %w", err)
	}
	compressed, err := age.Decrypt(bufio.NewReaderSize(disk, 64<<10), identity)
	if err != nil {
		return nil, files[at], errors.Join(fmt.Errorf("open file of an export: %w", err), disk.Close())
	}
	return &CompressedFile{compressed, disk}, files[at], nil
}

// Lines returns the decompressed content.
func (f *CompressedFile) Lines() (io.Reader, error) { return gzip.NewReader(f) }

func removeFolder(app core.App, id string) error {
	if err := os.RemoveAll(exportFolder(app, id)); err != nil {
		return fmt.Errorf("remove files of an export: %w", err)
	}
	return nil
}

// removeOrphans removes the folders of exports that no longer exist.
func (e *BulkExporter) removeOrphans(app core.App) error {
	found, err := os.ReadDir(exportsFolder(app)) // before the query: the folder of an export that starts in between is not an orphan
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
