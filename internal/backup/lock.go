package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// These are the operating system's locks on open files: they end with the process that holds them, even if it is killed. The files remain.
const (
	serveFile = "serve.lock"  // exclusive to the service: two services would deliver, notify and bill twice
	inUseFile = "vigil.lock"  // shared by processes with the data folder open, exclusive to one that replaces its content
	sealFile  = "seal.lock"   // shared by commands that seal values while the service runs, exclusive to a process that retires a key
	workFile  = "backup.lock" // exclusive to a process that creates, verifies or restores a backup
	workRoom  = ".backup"     // scratch folder of the process that holds workFile
)

// Hold prevents the data folder from being replaced until release, which may be called more than once. It fails while a backup is being restored
// into the folder.
func Hold(dir string) (release func() error, err error) {
	lock, err := take(dir, inUseFile, (*flock.Flock).TryRLock, "a backup is being restored into this data folder: wait until that is done")
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// Serve makes this process the only one that serves the data folder, until release. Commands may still use the folder.
func Serve(dir string) (release func() error, err error) {
	lock, err := take(dir, serveFile, func(lock *flock.Flock) (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // a process that calls Served holds the lock briefly
		defer cancel()
		held, err := lock.TryLockContext(ctx, patience/20)
		if ctx.Err() != nil {
			err = nil // another process holds the lock
		}
		return held, err
	}, "another process serves this data folder: stop it first")
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// patience is how long a starting service waits for processes that only check the lock.
const patience = time.Second

// Served reports whether a process serves a data folder.
func Served(dir string) (bool, error) {
	lock, err := lockFile(dir, serveFile)
	if err != nil {
		return false, err
	}
	free, err := lock.TryRLock()
	if err := errors.Join(err, lock.Close()); err != nil {
		return false, fmt.Errorf("check whether the data folder is served: %w", err)
	}
	return !free, nil
}

// Seal prevents keys from being retired until release, so that a command can seal values under the first key. It waits for a retirement that is
// running.
func Seal(dir string) (release func() error, err error) {
	lock, err := lockFile(dir, sealFile)
	if err != nil {
		return nil, err
	}
	if err := lock.RLock(); err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	return lock.Close, nil
}

// Alone runs work, with alone set if no other process can seal values during it. This process must have released [Seal].
func Alone(dir string, work func(alone bool) error) error {
	lock, err := lockFile(dir, sealFile)
	if err != nil {
		return err
	}
	alone, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the data folder: %w", err)
	}
	return errors.Join(work(alone), lock.Close())
}

// claim locks the data folder exclusively.
func claim(dir string) (*flock.Flock, error) {
	return take(dir, inUseFile, (*flock.Flock).TryLock, "the data folder is in use: first stop the service and any other command that uses it")
}

// room returns an empty scratch folder for one process at a time; it removes what a killed process left there. leave removes the folder.
func room(dir string) (scratch string, leave func(), err error) {
	lock, err := take(dir, workFile, (*flock.Flock).TryLock, "another backup of this data folder is being created, verified or restored: wait until that is done")
	if err != nil {
		return "", nil, err
	}
	scratch = filepath.Join(dir, workRoom)
	leave = func() {
		_ = os.RemoveAll(scratch) // remaining files are encrypted, and removed at the next run
		_ = lock.Close()
	}
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o700)); err != nil {
		leave()
		return "", nil, fmt.Errorf("create a scratch folder: %w", err)
	}
	return scratch, leave, nil
}

// take acquires a lock; taken is the error message if another process holds it.
func take(dir, name string, try func(*flock.Flock) (bool, error), taken string) (*flock.Flock, error) {
	lock, err := lockFile(dir, name)
	if err != nil {
		return nil, err
	}
	held, err := try(lock)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if !held {
		return nil, errors.New(taken)
	}
	return lock, nil
}

func lockFile(dir, name string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	return flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600)), nil
}
