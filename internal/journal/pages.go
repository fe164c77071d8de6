package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// bbolt checks its meta pages and trusts all others: a damaged one makes it
// panic, also in goroutines of its own where nobody can recover, or loop for
// ever. So its tree of pages is walked before it sees the file. The layout is
// that of bbolt's version 2 files, little-endian.
const (
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	boltPageHead = 16
	boltElement  = 16
	boltBranch   = 0x01
	boltLeaf     = 0x02
	boltBucket   = 0x01 // flag of a leaf's element whose value is a bucket
	boltMetaEnd  = boltPageHead + 64
)

// boltMeta is one of the two pages at the beginning, of which the valid one with
// the higher transaction counts.
type boltMeta struct {
	pageSize        uint32
	root, end, txid uint64
}

func readBoltMeta(b []byte, at int) (m boltMeta, ok bool) {
	if at+boltMetaEnd > len(b) {
		return m, false
	}
	b = b[at+boltPageHead : at+boltMetaEnd]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	le := binary.LittleEndian
	ok = le.Uint32(b) == boltMagic && le.Uint32(b[4:]) == boltVersion && le.Uint64(b[56:]) == sum.Sum64()
	return boltMeta{pageSize: le.Uint32(b[8:]), root: le.Uint64(b[16:]), end: le.Uint64(b[40:]), txid: le.Uint64(b[48:])}, ok
}

// findBoltMeta returns the meta page that bbolt will use. Where the second one
// stands depends on the size of a page, which only they tell.
func findBoltMeta(b []byte) (m boltMeta, ok bool) {
	m, ok = readBoltMeta(b, 0)
	for size := 1 << 10; size <= 16<<20; size <<= 1 {
		second, valid := readBoltMeta(b, size)
		if valid && int(second.pageSize) == size && (!ok || second.txid > m.txid) {
			m, ok = second, true
		}
	}
	return m, ok && m.pageSize >= 1<<10
}

// pageWalk visits every page that can be reached from the root.
type pageWalk struct {
	b    []byte
	meta boltMeta
	seen map[uint64]bool
}

// checkPages reports what is wrong with the structure of a bbolt file.
func checkPages(b []byte) error {
	m, ok := findBoltMeta(b)
	if !ok {
		return fmt.Errorf("neither meta page is valid")
	}
	w := pageWalk{b, m, make(map[uint64]bool)}
	return w.page(m.root, &keyOrder{})
}

// keyOrder sees the keys of a tree in the order of a walk.
type keyOrder struct {
	last    []byte
	begun   bool
	orEqual bool // the key of a branch may be that of the first one below it
}

func (o *keyOrder) see(key []byte, branch bool) bool {
	c := bytes.Compare(o.last, key)
	ok := !o.begun || c < 0 || c == 0 && o.orEqual
	o.last, o.begun, o.orEqual = key, true, branch
	return ok
}

func (w *pageWalk) page(id uint64, o *keyOrder) error {
	size := uint64(w.meta.pageSize)
	if id < 2 || id >= w.meta.end || (id+1)*size > uint64(len(w.b)) {
		return fmt.Errorf("page %d is out of range", id)
	}
	p := w.b[id*size:]
	le := binary.LittleEndian
	over := uint64(le.Uint32(p[12:]))
	if le.Uint64(p) != id || id+over >= w.meta.end || (over+1)*size > uint64(len(p)) {
		return fmt.Errorf("head of page %d is wrong", id)
	}
	for i := range over + 1 {
		if w.seen[id+i] {
			return fmt.Errorf("page %d is used twice", id+i)
		}
		w.seen[id+i] = true
	}
	return w.elements(id, p[:(over+1)*size], o)
}

// elements visits what a page holds; p is the page with its head.
func (w *pageWalk) elements(id uint64, p []byte, o *keyOrder) error {
	le := binary.LittleEndian
	flags, count := le.Uint16(p[8:]), int(le.Uint16(p[10:]))
	if flags != boltBranch && flags != boltLeaf || flags == boltBranch && count == 0 ||
		boltPageHead+count*boltElement > len(p) {
		return fmt.Errorf("page %d is neither a branch nor a leaf", id)
	}
	for i := range count {
		e := p[boltPageHead+i*boltElement:]
		var err error
		if flags == boltBranch {
			err = w.branch(e, o)
		} else {
			err = w.leaf(e, o)
		}
		if err != nil {
			return fmt.Errorf("page %d: element %d: %w", id, i, err)
		}
	}
	return nil
}

// branch visits an element {position u32, key size u32, page u64}; e ends where
// the page does.
func (w *pageWalk) branch(e []byte, o *keyOrder) error {
	le := binary.LittleEndian
	key, ok := part(e, le.Uint32(e), le.Uint32(e[4:]))
	if !ok || !o.see(key, true) {
		return fmt.Errorf("key is wrong")
	}
	return w.page(le.Uint64(e[8:]), o)
}

// leaf visits an element {flags u32, position u32, key size u32, value size u32}.
func (w *pageWalk) leaf(e []byte, o *keyOrder) error {
	le := binary.LittleEndian
	flags, at, ksize, vsize := le.Uint32(e), le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])
	key, ok := part(e, at, ksize)
	if !ok || !o.see(key, false) {
		return fmt.Errorf("key is wrong")
	}
	if _, ok := part(e, at, uint32(min(uint64(ksize)+uint64(vsize), 1<<32-1))); !ok {
		return fmt.Errorf("value is out of range")
	}
	value := e[at+ksize : at+ksize+vsize]
	if flags&boltBucket == 0 {
		return nil
	}
	if len(value) < 16 {
		return fmt.Errorf("bucket is cut short")
	}
	// A bucket is {root page u64, sequence u64}; a small one has root 0 and its
	// only leaf behind that.
	if root := le.Uint64(value); root != 0 {
		return w.page(root, &keyOrder{})
	}
	inline := value[16:]
	if len(inline) < boltPageHead || le.Uint16(inline[8:]) != boltLeaf {
		return fmt.Errorf("bucket is cut short")
	}
	return w.elements(0, inline, &keyOrder{})
}

// part returns size bytes at an offset of b.
func part(b []byte, at, size uint32) ([]byte, bool) {
	if uint64(at)+uint64(size) > uint64(len(b)) || at < boltElement {
		return nil, false
	}
	return b[at : at+size], true
}
