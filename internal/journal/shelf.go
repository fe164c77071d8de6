package journal

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Shelf is a place in the state for numbered blobs of many owners, such as the dead
// letters of each sink. The blobs are the caller's own.
type Shelf string

// The shelves.
const (
	ShelfLetters Shelf = "letters" // events that a sink did not get, by sequence
	ShelfReplays Shelf = "replays" // ranges that a sink is to get once more, by number
	ShelfLosses  Shelf = "losses"  // what retention took from a sink, by sequence
	ShelfReading Shelf = "reading" // what retention took while a sink had it in hand, by sequence
)

// shelves came after the first states were made; Open adds them, and raises the version.
var shelves = []Shelf{ShelfLetters, ShelfReplays, ShelfLosses, ShelfReading}

// Change puts blobs on a shelf, in the place of those with the same number, and takes
// others away, all at once. A number that is to be taken and not there is no error.
func (s *State) Change(shelf Shelf, owner string, put map[uint64][]byte, take ...uint64) error {
	return s.update("change "+string(shelf)+" of "+owner, func(tx *bolt.Tx) error {
		for _, n := range take {
			if err := drop(tx, []byte(shelf), shelfKey(owner, n)); err != nil {
				return err
			}
		}
		return putAll(tx, []byte(shelf), owner, put)
	})
}

func putAll(tx *bolt.Tx, bucket []byte, owner string, blobs map[uint64][]byte) error {
	for n, blob := range blobs {
		if err := put(tx, bucket, shelfKey(owner, n), blob); err != nil {
			return err
		}
	}
	return nil
}

// Each calls fn with copies of the blobs of an owner from a number on, in order, until
// fn returns an error, which it returns. It sees one moment; fn must not change the
// state.
func (s *State) Each(shelf Shelf, owner string, from uint64, fn func(n uint64, blob []byte) error) error {
	bucket := []byte(shelf)
	err := s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		if b == nil {
			return nil // an old state that is only looked at
		}
		c, prefix := b.Cursor(), shelfKey(owner, 0)[:len(owner)+1]
		for key, stored := c.Seek([]byte(shelfKey(owner, from))); len(key) == len(prefix)+8 && string(key[:len(prefix)]) == prefix; key, stored = c.Next() {
			value, ok := unseal(bucket, key, stored)
			n := binary.BigEndian.Uint64(key[len(prefix):])
			if !ok {
				return s.damage(bucket, owner, fmt.Sprintf("checksum of number %d does not match", n))
			}
			if err := fn(n, append([]byte{}, value...)); err != nil {
				return err
			}
		}
		return nil
	})
	return s.wrap("read "+string(shelf)+" of "+owner, err)
}

// ForgetSink deletes all that is kept for a sink: its cursor and what is on its
// shelves.
func (s *State) ForgetSink(sink string) error {
	return s.update("forget sink "+sink, func(tx *bolt.Tx) error {
		if err := drop(tx, bucketCursors, sink); err != nil {
			return err
		}
		for _, shelf := range shelves {
			if err := dropAll(tx, []byte(shelf), shelfKey(sink, 0)[:len(sink)+1]); err != nil {
				return err
			}
		}
		return nil
	})
}

func dropAll(tx *bolt.Tx, bucket []byte, prefix string) error {
	var keys []string
	c := tx.Bucket(bucket).Cursor()
	for key, _ := c.Seek([]byte(prefix)); len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix; key, _ = c.Next() {
		keys = append(keys, string(key))
	}
	for _, key := range keys {
		if err := drop(tx, bucket, key); err != nil {
			return err
		}
	}
	return nil
}

// Cursors returns the cursors of all sinks, also of those that are configured no more.
func (s *State) Cursors() (map[string]uint64, error) {
	cursors := map[string]uint64{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketCursors).ForEach(func(key, stored []byte) error {
			value, ok := unseal(bucketCursors, key, stored)
			if !ok || len(value) != 8 {
				return s.damage(bucketCursors, string(key), "checksum does not match")
			}
			cursors[string(key)] = binary.BigEndian.Uint64(value)
			return nil
		})
	})
	return cursors, s.wrap("read cursors", err)
}

// shelfKey orders by owner and number. An owner must not hold a zero byte, which
// ends it.
func shelfKey(owner string, n uint64) string {
	return owner + "\x00" + string(number(n))
}

// drop deletes a value, and takes its checksum out of the total.
func drop(tx *bolt.Tx, bucket []byte, key string) error {
	b := tx.Bucket(bucket)
	old := b.Get([]byte(key))
	if old == nil {
		return nil
	}
	change := binary.BigEndian.Uint32(old)
	if err := b.Delete([]byte(key)); err != nil {
		return err
	}
	meta := tx.Bucket(bucketMeta)
	if total := meta.Get(keyTotal); len(total) == 4 {
		change ^= binary.BigEndian.Uint32(total)
	}
	return meta.Put(keyTotal, binary.BigEndian.AppendUint32(nil, change))
}

// addShelves makes the shelves that a state lacks, which makes it one of this version.
func addShelves(db *bolt.DB) error {
	return db.Update(func(tx *bolt.Tx) error {
		for _, shelf := range shelves {
			if _, err := tx.CreateBucketIfNotExists([]byte(shelf)); err != nil {
				return err
			}
		}
		return put(tx, bucketMeta, string(keyVersion), number(stateVersion))
	})
}

// eachShelf calls fn with the shelves that there are.
func eachShelf(tx *bolt.Tx, fn func(name []byte, bucket *bolt.Bucket) error) error {
	for _, shelf := range shelves {
		if b := tx.Bucket([]byte(shelf)); b != nil {
			if err := fn([]byte(shelf), b); err != nil {
				return err
			}
		}
	}
	return nil
}
