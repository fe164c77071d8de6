package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

const (
	stateName = "state.db"
	// stateVersion is that of the state alone; segments have formatVersion. Version 1 had
	// no shelves: a program that knows only that one would take them for damage.
	stateVersion = 2
)

// stateFacts is what the state says about the log that it belongs to.
type stateFacts struct {
	journal uint64 // identity of the journal
	end     uint64 // the log reached at least to here
	// furthest is the greatest sequence that a cursor or marks name, with what
	// names it.
	furthest uint64
	namedBy  string
}

// createState makes an empty state. It gets its name only when it is whole.
func createState(d disk, dir string, journal uint64) error {
	path := filepath.Join(dir, stateName)
	db, err := openBolt(path + tempSuffix)
	if err != nil {
		return fmt.Errorf("create state: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketCursors, bucketResume, bucketMarks} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return errors.Join(
			put(tx, bucketMeta, string(keyVersion), number(stateVersion)),
			put(tx, bucketMeta, string(keyJournal), number(journal)),
			put(tx, bucketMeta, string(keyEnd), number(1)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("create state: %w", err)
	}
	if err := d.rename(path+tempSuffix, path); err != nil {
		return fmt.Errorf("create state: %w", err)
	}
	return d.syncDir(dir)
}

// access says what a directory is opened for.
type access bool

const (
	toWrite access = false
	toLook  access = true // nothing in it is changed, and it may be read-only
)

// openState opens the state of a directory and reads all of it once. Without a
// file the error is fs.ErrNotExist.
//
// After checkPages nothing should make bbolt panic, or its memory map fault; if
// something does, it is damage all the same.
func openState(dir string, how access) (db *bolt.DB, facts stateFacts, err error) {
	path := filepath.Join(dir, stateName)
	if b, err := os.ReadFile(path); err != nil {
		return nil, facts, fmt.Errorf("open state: %w", err)
	} else if err := checkPages(b); err != nil {
		return nil, facts, &DamageError{path, -1, err.Error()}
	}
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &DamageError{path, -1, fmt.Sprint(p)}
			abandon(file)
		}
	}()
	opened, err := openBoltWith(path, how, func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
		return file, err
	})
	if err != nil {
		return nil, facts, stateOpenError(path, err)
	}
	if facts, err = readFacts(opened, path); err != nil {
		return nil, facts, errors.Join(err, opened.Close())
	}
	return opened, facts, nil
}

// abandon lets go of a file in the middle of which bbolt has panicked. The map
// of it stays, and would keep the lock with it.
func abandon(f *os.File) {
	if f != nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}
}

func stateOpenError(path string, err error) error {
	for _, damage := range []error{bolt.ErrInvalid, bolt.ErrChecksum, bolt.ErrVersionMismatch} { //nolint:staticcheck // the same values as in its errors package
		if errors.Is(err, damage) {
			return &DamageError{path, -1, err.Error()}
		}
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) || errors.Is(err, bolt.ErrTimeout) { //nolint:staticcheck // as above
		return fmt.Errorf("open state %s: %w", path, err)
	}
	return &DamageError{path, -1, err.Error()} // bbolt's untyped complaints about size and page size
}

func openBolt(path string) (*bolt.DB, error) { return openBoltWith(path, toWrite, os.OpenFile) }

func openBoltWith(path string, how access, open func(string, int, os.FileMode) (*os.File, error)) (*bolt.DB, error) {
	// The directory is locked, so nobody but a stray tool can hold the file.
	return bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      time.Second,
		FreelistType: bolt.FreelistMapType,
		// The list of free pages has no checksum either, and a wrong one would let
		// good pages be overwritten. Without it bbolt finds them by itself.
		NoFreelistSync: true,
		OpenFile:       open,
		ReadOnly:       how == toLook,
	})
}

// checkVersion comes before anything else is looked at: another version may have all of
// it otherwise.
func checkVersion(tx *bolt.Tx, path string) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return &DamageError{path, -1, fmt.Sprintf("there are no %s", bucketMeta)}
	}
	value, ok := unseal(bucketMeta, keyVersion, meta.Get(keyVersion))
	if !ok || len(value) < 8 {
		return &DamageError{path, -1, "it has no version"}
	}
	if n := binary.BigEndian.Uint64(value); n == 0 || n > stateVersion {
		return &VersionError{path, uint32(n), stateVersion}
	}
	return nil
}

// readFacts reads every value of the state, and checks it.
func readFacts(db *bolt.DB, path string) (facts stateFacts, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		if err := checkVersion(tx, path); err != nil {
			return err
		}
		var total uint32
		read := func(name []byte, bucket *bolt.Bucket) error {
			return bucket.ForEach(func(key, stored []byte) error {
				if bytes.Equal(key, keyTotal) {
					return nil
				}
				value, ok := unseal(name, key, stored)
				if !ok {
					return &DamageError{path, -1, fmt.Sprintf("checksum of %s of %q does not match", name, key)}
				}
				total ^= binary.BigEndian.Uint32(stored)
				return facts.note(path, name, key, value)
			})
		}
		for _, name := range [][]byte{bucketMeta, bucketCursors, bucketResume, bucketMarks} {
			bucket := tx.Bucket(name)
			if bucket == nil {
				return &DamageError{path, -1, fmt.Sprintf("there are no %s", name)}
			}
			if err := read(name, bucket); err != nil {
				return err
			}
		}
		if err := eachShelf(tx, read); err != nil {
			return err
		}
		if b := tx.Bucket(bucketMeta).Get(keyTotal); len(b) != 4 || binary.BigEndian.Uint32(b) != total {
			return &DamageError{path, -1, "something is missing from it"}
		}
		return nil
	})
	return facts, err
}

// note takes in a value of the state.
func (f *stateFacts) note(path string, bucket, key, value []byte) error {
	if bytes.Equal(bucket, bucketResume) || slices.Contains(shelves, Shelf(bucket)) {
		return nil // a blob, and no number before it
	}
	if len(value) < 8 {
		return &DamageError{path, -1, fmt.Sprintf("%s of %q are cut short", bucket, key)}
	}
	n := binary.BigEndian.Uint64(value)
	switch {
	case !bytes.Equal(bucket, bucketMeta):
		if n > f.furthest {
			f.furthest, f.namedBy = n, fmt.Sprintf("%s of %s", bucket, key)
		}
	case bytes.Equal(key, keyJournal):
		f.journal = n
	case bytes.Equal(key, keyEnd):
		f.end = n
	}
	return nil
}
