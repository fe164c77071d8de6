package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

const stateName = "state.db"

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
			put(tx, bucketMeta, string(keyVersion), number(formatVersion)),
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

// openState opens the state of a directory and reads all of it once. Without a
// file the error is fs.ErrNotExist.
//
// bbolt checks its meta pages but trusts the others: it panics on a damaged one,
// and its memory map faults where the file is too short. Reading everything here
// turns both into a DamageError.
func openState(dir string) (db *bolt.DB, facts stateFacts, err error) {
	path := filepath.Join(dir, stateName)
	if info, err := os.Stat(path); err != nil {
		return nil, facts, fmt.Errorf("open state: %w", err)
	} else if info.Size() == 0 { // bbolt would take it for a new one
		return nil, facts, &DamageError{path, 0, "the file is empty"}
	}
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &DamageError{path, -1, fmt.Sprint(p)}
			abandon(file)
		}
	}()
	opened, err := openBoltWith(path, func(name string, flag int, mode os.FileMode) (*os.File, error) {
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

func openBolt(path string) (*bolt.DB, error) { return openBoltWith(path, os.OpenFile) }

func openBoltWith(path string, open func(string, int, os.FileMode) (*os.File, error)) (*bolt.DB, error) {
	// The directory is locked, so nobody but a stray tool can hold the file.
	return bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      time.Second,
		FreelistType: bolt.FreelistMapType,
		OpenFile:     open,
	})
}

// readFacts reads every value of the state, and checks it.
func readFacts(db *bolt.DB, path string) (facts stateFacts, err error) {
	broken := func(format string, args ...any) error {
		return &DamageError{path, -1, fmt.Sprintf(format, args...)}
	}
	err = db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return broken("it is not the state of a journal")
		}
		for key, to := range map[string]*uint64{string(keyJournal): &facts.journal, string(keyEnd): &facts.end} {
			b, ok := unseal(bucketMeta, []byte(key), meta.Get([]byte(key)))
			if !ok || len(b) != 8 {
				return broken("checksum of %s does not match", key)
			}
			*to = binary.BigEndian.Uint64(b)
		}
		for _, name := range [][]byte{bucketCursors, bucketResume, bucketMarks} {
			bucket := tx.Bucket(name)
			if bucket == nil {
				return broken("there are no %s", name)
			}
			if err := bucket.ForEach(func(k, v []byte) error {
				b, ok := unseal(name, k, v)
				if !ok {
					return broken("checksum of %s of %q does not match", name, k)
				}
				return facts.note(name, k, b, broken)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return facts, err
}

// note remembers the greatest sequence that a cursor or marks name.
func (f *stateFacts) note(bucket, key, value []byte, broken func(string, ...any) error) error {
	if string(bucket) == string(bucketResume) {
		return nil
	}
	if len(value) < 8 {
		return broken("%s of %q are cut short", bucket, key)
	}
	if n := binary.BigEndian.Uint64(value); n > f.furthest {
		f.furthest, f.namedBy = n, fmt.Sprintf("%s of %s", bucket, key)
	}
	return nil
}

// put stores a value with a checksum over its place and itself; bbolt has none
// of its own for data.
func put(tx *bolt.Tx, bucket []byte, key string, value []byte) error {
	sum := seal(bucket, []byte(key), value)
	b := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
	return tx.Bucket(bucket).Put([]byte(key), b)
}

func unseal(bucket, key, stored []byte) (value []byte, ok bool) {
	if len(stored) < 4 {
		return nil, false
	}
	value = stored[4:]
	return value, binary.BigEndian.Uint32(stored) == seal(bucket, key, value)
}

func seal(bucket, key, value []byte) uint32 {
	sum := crc32.Checksum(bucket, castagnoli)
	sum = crc32.Update(sum, castagnoli, append([]byte{0}, key...))
	sum = crc32.Update(sum, castagnoli, []byte{0})
	return crc32.Update(sum, castagnoli, value)
}
