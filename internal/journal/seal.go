package journal

import (
	"encoding/binary"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// put stores a value with a checksum over its place and itself; bbolt has none
// of its own for data. The total of all checksums tells when a value is missing.
func put(tx *bolt.Tx, bucket []byte, key string, value []byte) error {
	sum := seal(bucket, []byte(key), value)
	b := tx.Bucket(bucket)
	change := sum
	if old := b.Get([]byte(key)); len(old) >= 4 {
		change ^= binary.BigEndian.Uint32(old)
	}
	stored := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
	if err := b.Put([]byte(key), stored); err != nil {
		return err
	}
	meta := tx.Bucket(bucketMeta)
	if total := meta.Get(keyTotal); len(total) == 4 {
		change ^= binary.BigEndian.Uint32(total)
	}
	return meta.Put(keyTotal, binary.BigEndian.AppendUint32(nil, change))
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
