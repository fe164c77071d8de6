package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// A million is what the documents give; it takes 1.5 GB, and minutes for bbolt.
var benchRecords = flag.Int("journal.records", 50_000, "records of the reopen and read benchmarks")

var benchBody = bytes.Repeat([]byte("0123456789abcde"), 100) // 1.5 kB

func repeat(body []byte, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = body
	}
	return list
}

var benchBucket = []byte("records")

func benchBolt(b *testing.B, path string) *bolt.DB {
	b.Helper()
	db, err := openBolt(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(benchBucket)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return db
}

func putBolt(b *testing.B, db *bolt.DB, bodies [][]byte) {
	b.Helper()
	if err := db.Update(func(tx *bolt.Tx) error {
		k := tx.Bucket(benchBucket)
		k.FillPercent = 0.9 // keys only grow
		for _, body := range bodies {
			n, _ := k.NextSequence()
			if err := k.Put(binary.BigEndian.AppendUint64(nil, n), body); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}

func perSecond(b *testing.B, records int) {
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		bodies := repeat(benchBody, n)
		b.Run(fmt.Sprint("journal/", n), func(b *testing.B) {
			j := mustOpen(b, b.TempDir(), Options{})
			for b.Loop() {
				if _, err := j.Append(context.Background(), bodies...); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, n)
		})
		b.Run(fmt.Sprint("bbolt/", n), func(b *testing.B) {
			db := benchBolt(b, b.TempDir()+"/db")
			for b.Loop() {
				putBolt(b, db, bodies)
			}
			perSecond(b, n)
		})
	}
	b.Run("journal/1x16callers", func(b *testing.B) {
		j := mustOpen(b, b.TempDir(), Options{})
		b.SetParallelism(8)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := j.Append(context.Background(), benchBody); err != nil {
					b.Error(err)
				}
			}
		})
		perSecond(b, 1)
	})
}

func BenchmarkReopen(b *testing.B) {
	b.Run("journal", func(b *testing.B) {
		dir := b.TempDir()
		fill(b, dir)
		for b.Loop() {
			j, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			die(b, j)
			b.StartTimer()
		}
	})
	b.Run("bbolt", func(b *testing.B) {
		path := b.TempDir() + "/db"
		fillBolt(b, path)
		for b.Loop() {
			db, err := openBolt(path)
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_ = db.Close()
			b.StartTimer()
		}
	})
}

func BenchmarkRead(b *testing.B) {
	b.Run("journal", func(b *testing.B) {
		dir := b.TempDir()
		fill(b, dir)
		j := mustOpen(b, dir, Options{})
		for b.Loop() {
			list, err := drain(j)
			if err != nil || list != *benchRecords {
				b.Fatal(list, err)
			}
		}
		perSecond(b, *benchRecords)
	})
	b.Run("bbolt", func(b *testing.B) {
		path := b.TempDir() + "/db"
		fillBolt(b, path)
		db := benchBolt(b, path)
		for b.Loop() {
			n := 0
			if err := db.View(func(tx *bolt.Tx) error {
				return tx.Bucket(benchBucket).ForEach(func(_, v []byte) error {
					n += len(bytes.Clone(v)) / len(benchBody)
					return nil
				})
			}); err != nil || n != *benchRecords {
				b.Fatal(n, err)
			}
		}
		perSecond(b, *benchRecords)
	})
}

func drain(j *Journal) (n int, err error) {
	r, err := j.NewReader(1)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for n < *benchRecords {
		list, err := r.Next(context.Background(), 256, 1<<20)
		if err != nil {
			return n, err
		}
		n += len(list)
	}
	return n, nil
}

// fill makes a journal of benchRecords records that was not closed.
func fill(b *testing.B, dir string) {
	b.Helper()
	j := mustOpen(b, dir, Options{})
	for n := *benchRecords; n > 0; n -= 1000 {
		if _, err := j.Append(context.Background(), repeat(benchBody, min(n, 1000))...); err != nil {
			b.Fatal(err)
		}
	}
	die(b, j)
}

func fillBolt(b *testing.B, path string) {
	b.Helper()
	db := benchBolt(b, path)
	for n := *benchRecords; n > 0; n -= 1000 {
		putBolt(b, db, repeat(benchBody, min(n, 1000)))
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		b.Fatal(err)
	}
}
