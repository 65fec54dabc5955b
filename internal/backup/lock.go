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
	serveFile     = "serve.lock"  // exclusive to the service: two services would deliver, notify and bill twice
	inUseFile     = "vigil.lock"  // shared by processes with the data folder open, exclusive to one that replaces its content
	sealFile      = "seal.lock"   // shared by commands that seal values while the service runs, exclusive to a process that retires a key
	workFile      = "backup.lock" // exclusive to a process that creates, verifies or restores a backup
	scratchFolder = ".backup"     // scratch folder of the process that holds workFile
)

// LockInUse prevents the data folder from being replaced until release, which may be called more than once. It fails while a backup is being restored
// into the folder.
func LockInUse(dir string) (release func() error, err error) {
	lock, err := acquire(dir, inUseFile, (*flock.Flock).TryRLock, "a backup is being restored into this data folder: wait until that is done")
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// LockServe makes this process the only one that serves the data folder, until release. Commands may still use the folder.
func LockServe(dir string) (release func() error, err error) {
	lock, err := acquire(dir, serveFile, func(lock *flock.Flock) (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), serveLockWait) // a process that calls IsServed holds the lock briefly
		defer cancel()
		held, err := lock.TryLockContext(ctx, serveLockWait/20)
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

// serveLockWait is how long a starting service waits for processes that only check the lock.
const serveLockWait = time.Second

// IsServed reports whether a process serves a data folder.
func IsServed(dir string) (bool, error) {
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

// LockSealing prevents keys from being retired until release, so that a command can seal values under the first key. It waits for a retirement that is
// running.
func LockSealing(dir string) (release func() error, err error) {
	lock, err := lockFile(dir, sealFile)
	if err != nil {
		return nil, err
	}
	if err := lock.RLock(); err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	return lock.Close, nil
}

// TryLockSealing runs work, with alone set if no other process can seal values during it. This process must have released [LockSealing].
func TryLockSealing(dir string, work func(alone bool) error) error {
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

// lockExclusive locks the data folder exclusively.
func lockExclusive(dir string) (*flock.Flock, error) {
	return acquire(dir, inUseFile, (*flock.Flock).TryLock, "the data folder is in use: first stop the service and any other command that uses it")
}

// scratchDir returns an empty scratch folder for one process at a time; it removes what a killed process left there. cleanup removes the folder.
func scratchDir(dir string) (scratch string, cleanup func(), err error) {
	lock, err := acquire(dir, workFile, (*flock.Flock).TryLock, "another backup of this data folder is being created, verified or restored: wait until that is done")
	if err != nil {
		return "", nil, err
	}
	scratch = filepath.Join(dir, scratchFolder)
	cleanup = func() {
		_ = os.RemoveAll(scratch) // remaining files are encrypted, and removed at the next run
		_ = lock.Close()
	}
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o700)); err != nil {
		cleanup()
		return "", nil, fmt.Errorf("create a scratch folder: %w", err)
	}
	return scratch, cleanup, nil
}

// acquire acquires a lock; heldMessage is the error message if another process holds it.
func acquire(dir, name string, try func(*flock.Flock) (bool, error), heldMessage string) (*flock.Flock, error) {
	lock, err := lockFile(dir, name)
	if err != nil {
		return nil, err
	}
	held, err := try(lock)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if !held {
		return nil, errors.New(heldMessage)
	}
	return lock, nil
}

func lockFile(dir, name string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	return flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600)), nil
}
