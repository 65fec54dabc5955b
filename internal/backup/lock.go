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

// The locks are the system's, on open files: they end with the process that holds them, however it ends. The files stay.
const (
	serveFile = "serve.lock"  // exclusive to the service: two of them would both send, tell and bill
	inUseFile = "vigil.lock"  // shared by whoever has the data folder open, exclusive to whoever replaces what is in it
	sealFile  = "seal.lock"   // shared by the commands that seal beside the service, exclusive to whoever retires a key
	workFile  = "backup.lock" // exclusive to whoever takes or proves a backup
	workRoom  = ".backup"     // scratch of who holds workFile
)

// Hold keeps a data folder from being replaced while it is open. It fails while a backup is being restored into it. release
// may be called more than once.
func Hold(dir string) (release func() error, err error) {
	lock, err := take(dir, inUseFile, (*flock.Flock).TryRLock, "a backup is being restored into this data folder: wait until that is done")
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// Serve makes this process the one that serves a data folder, until release. Commands may work on it beside the service.
func Serve(dir string) (release func() error, err error) {
	lock, err := take(dir, serveFile, func(lock *flock.Flock) (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // whoever asks Served holds it for a moment
		defer cancel()
		held, err := lock.TryLockContext(ctx, patience/20)
		if ctx.Err() != nil {
			err = nil // somebody else has it
		}
		return held, err
	}, "another process serves this data folder: stop it first")
	if err != nil {
		return nil, err
	}
	return lock.Close, nil
}

// patience is how long a service that starts waits for those who only look.
const patience = time.Second

// Served reports whether a process serves a data folder.
func Served(dir string) (bool, error) {
	lock, err := lockFile(dir, serveFile)
	if err != nil {
		return false, err
	}
	free, err := lock.TryRLock()
	if err := errors.Join(err, lock.Close()); err != nil {
		return false, fmt.Errorf("look who serves the data folder: %w", err)
	}
	return !free, nil
}

// Seal keeps keys from being retired while a command may seal under its first one, until release. It waits for a retirement under way.
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

// Alone runs work while no process but this one, which has let go of Seal, may seal beside the service. alone is false when another one does.
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

// claim has a data folder for itself.
func claim(dir string) (*flock.Flock, error) {
	return take(dir, inUseFile, (*flock.Flock).TryLock, "the data folder is in use: stop the service, and any other command that works on it, first")
}

// room is a scratch folder for one at a time. What one that was killed has left there goes first. leave removes it.
func room(dir string) (scratch string, leave func(), err error) {
	lock, err := take(dir, workFile, (*flock.Flock).TryLock, "another backup of this data folder is being taken, verified or restored: wait until that is done")
	if err != nil {
		return "", nil, err
	}
	scratch = filepath.Join(dir, workRoom)
	leave = func() {
		_ = os.RemoveAll(scratch) // what stays is sealed, and goes the next time
		_ = lock.Close()
	}
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o700)); err != nil {
		leave()
		return "", nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	return scratch, leave, nil
}

// take takes a lock; taken is what to say when somebody else holds it.
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
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	return flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600)), nil
}
