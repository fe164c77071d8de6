package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func onShelf(t *testing.T, s *State, shelf Shelf, owner string, from uint64) (list []string) {
	t.Helper()
	if err := s.Each(shelf, owner, from, func(n uint64, blob []byte) error {
		list = append(list, fmt.Sprint(n, string(blob)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestShelvesKeepOwnersApart(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := j.State()
	for owner, blobs := range map[string]map[uint64][]byte{
		"a": {1: []byte("one"), 300: []byte("three"), 2: []byte("two")}, "a.b": {1: []byte("other")}, "": {7: nil},
	} {
		if err := s.Change(ShelfLetters, owner, blobs); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Change(ShelfReplays, "a", map[uint64][]byte{1: []byte("replay")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Change(ShelfLetters, "a", map[uint64][]byte{2: []byte("TWO")}, 1, 99); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SaveCursors(map[string]uint64{"a": 1, "a.b": 1}), j.Close()); err != nil {
		t.Fatal(err)
	}

	if _, err := Verify(dir); err != nil {
		t.Fatal(err)
	}
	if j, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	s = j.State()
	for _, c := range []struct {
		shelf Shelf
		owner string
		from  uint64
		want  []string
	}{
		{ShelfLetters, "a", 0, []string{"2TWO", "300three"}}, {ShelfLetters, "a", 3, []string{"300three"}}, {ShelfLetters, "a", 301, nil},
		{ShelfLetters, "a.b", 0, []string{"1other"}}, {ShelfLetters, "", 0, []string{"7"}}, {ShelfReplays, "a", 0, []string{"1replay"}},
		{ShelfLosses, "a", 0, nil}, {ShelfLetters, "b", 0, nil},
	} {
		if got := onShelf(t, s, c.shelf, c.owner, c.from); !slices.Equal(got, c.want) {
			t.Errorf("%s of %q from %d: %v, want %v", c.shelf, c.owner, c.from, got, c.want)
		}
	}
	if err := s.ForgetSink("a"); err != nil {
		t.Fatal(err)
	}
	cursors, err := s.Cursors()
	if err != nil || len(cursors) != 1 || cursors["a.b"] != 1 || onShelf(t, s, ShelfLetters, "a", 0) != nil || len(onShelf(t, s, ShelfLetters, "a.b", 0)) != 1 {
		t.Errorf("after a was forgotten: %v, %v", cursors, err)
	}
}

// asVersion makes the state of a journal that nobody has open one of another version.
func asVersion(t *testing.T, dir string, version uint64, change func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, stateName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return errors.Join(put(tx, bucketMeta, string(keyVersion), number(version)), change(tx))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// versionOf is the version that a state says it has.
func versionOf(t *testing.T, s *State) uint64 {
	t.Helper()
	b, err := s.get("read version", bucketMeta, string(keyVersion))
	if err != nil || len(b) != 8 {
		t.Fatal(b, err)
	}
	return binary.BigEndian.Uint64(b)
}

// A state of the version that had no shelves is read as it is, and becomes one of this
// version when it is written to: a program that knows no shelves must not have it then.
func TestOpenAddsShelves(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	asVersion(t, dir, 1, func(tx *bolt.Tx) (err error) {
		for _, shelf := range shelves {
			err = errors.Join(err, tx.DeleteBucket([]byte(shelf)))
		}
		return err
	})
	if _, err := Verify(dir); err != nil {
		t.Errorf("verify: %v", err)
	}
	if _, err := Inspect(dir); err != nil {
		t.Errorf("inspect: %v", err)
	}
	for range 2 {
		if j, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		if v := versionOf(t, j.State()); v != stateVersion || stateVersion == 1 {
			t.Errorf("version %d", v)
		}
		if err := errors.Join(j.State().Change(ShelfLetters, "a", map[uint64][]byte{1: []byte("x")}), j.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A state of a later version is refused as such, whatever else that version has made of
// it, and is not touched.
func TestALaterStateIsRefused(t *testing.T) {
	for name, change := range map[string]func(tx *bolt.Tx) error{
		"the version alone":   func(*bolt.Tx) error { return nil },
		"another total":       func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyTotal, []byte("what")) },
		"other checksums":     func(tx *bolt.Tx) error { return tx.Bucket(bucketCursors).Put([]byte("a"), []byte("otherwise")) },
		"values without them": func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put([]byte("a"), []byte("x")) },
		"fewer buckets":       func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketMarks) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			asVersion(t, dir, stateVersion+1, change)
			path := filepath.Join(dir, stateName)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			open := func(dir string) error { _, err := Open(dir, Options{}); return err }
			verify := func(dir string) error { _, err := Verify(dir); return err }
			inspect := func(dir string) error { _, err := Inspect(dir); return err }
			for what, try := range map[string]func(string) error{"open": open, "verify": verify, "inspect": inspect} {
				var version *VersionError
				if err := try(dir); !errors.As(err, &version) || version.File != path || version.Found != stateVersion+1 || version.Known != stateVersion {
					t.Errorf("%s: %v", what, err)
				}
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// A blob that is gone, or another one than was put, is damage.
func TestOpenNoticesDamagedShelves(t *testing.T) {
	for name, damage := range map[string]func(b *bolt.Bucket, key []byte) error{
		"gone":    func(b *bolt.Bucket, key []byte) error { return b.Delete(key) },
		"changed": func(b *bolt.Bucket, key []byte) error { return b.Put(key, append(b.Get(key)[:4:4], "other"...)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.State().Change(ShelfLetters, "a", map[uint64][]byte{1: []byte("x")}), j.Close()); err != nil {
				t.Fatal(err)
			}
			db, err := bolt.Open(filepath.Join(dir, stateName), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error { return damage(tx.Bucket([]byte(ShelfLetters)), []byte(shelfKey("a", 1))) })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir, Options{}); !errors.As(err, new(*DamageError)) {
				t.Errorf("open: %v", err)
			}
		})
	}
}
