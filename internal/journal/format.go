package journal

import (
	"encoding/binary"
	"hash/crc32"
)

// The format of version 1; docs/decisions/0001-journal-format.md has the reasons.
// All numbers are little-endian, all checksums CRC32C.
const (
	formatVersion = 1

	// MaxBody is the size of the largest body, in bytes.
	MaxBody = 64 << 20

	segmentMagic = "sparkbjl"
	segmentHead  = 64

	frameMarker = "fram"
	frameHead   = 40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what stands at the beginning of a segment. What it says about the
// segment before makes a chain: a lost or shortened segment is noticed without
// reading a single record.
type header struct {
	version   uint32
	journal   uint64 // identity of the journal, the same in its state
	first     uint64 // sequence of the segment's first record
	prevFirst uint64 // first sequence of the segment before, 0 where there was none
	prevSize  int64  // size of that segment in bytes
	prevTime  int64  // time of the newest record before this segment, unix ns
}

func (h header) encode() []byte {
	b := make([]byte, segmentHead)
	copy(b, segmentMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], h.version)
	le.PutUint64(b[16:], h.journal)
	le.PutUint64(b[24:], h.first)
	le.PutUint64(b[32:], h.prevFirst)
	le.PutUint64(b[40:], uint64(h.prevSize))
	le.PutUint64(b[48:], uint64(h.prevTime))
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// decodeHeader reads what encode wrote. Of a header of another version it
// returns the version alone, since the rest may be laid out otherwise; flaw is
// empty if there is nothing to object to.
func decodeHeader(b []byte) (h header, flaw string) {
	le := binary.LittleEndian
	if len(b) < segmentHead || string(b[:8]) != segmentMagic {
		return h, "this is not a segment"
	}
	switch h.version = le.Uint32(b[8:]); h.version {
	case formatVersion:
	case 0: // never was one
		return h, "the segment's header has no version"
	default:
		return h, ""
	}
	if le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return h, "checksum of the segment's header does not match"
	}
	h.journal = le.Uint64(b[16:])
	h.first = le.Uint64(b[24:])
	h.prevFirst = le.Uint64(b[32:])
	h.prevSize = int64(le.Uint64(b[40:]))
	h.prevTime = int64(le.Uint64(b[48:]))
	return h, ""
}

// frame is what stands before a body. Frames that were written and synced
// together are a group; each says which of how many it is, so that every single
// one tells where its group begins.
type frame struct {
	length   uint32
	bodyCRC  uint32
	index    uint32 // place in the group, from 0
	count    uint32 // frames of the group
	sequence uint64
	time     int64 // unix ns
}

func (f frame) size() int64 { return frameHead + int64(f.length) }

// groupFirst is the sequence of the first frame of the frame's group.
func (f frame) groupFirst() uint64 { return f.sequence - uint64(f.index) }

// codec writes and reads the frames of one journal. Checksums are seeded with
// the journal's identity: bytes of another journal, in a wrong place or inside
// an event, do not pass for frames of this one.
type codec struct{ seed uint32 }

func newCodec(journal uint64) codec {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], journal)
	return codec{crc32.Checksum(id[:], castagnoli)}
}

// append adds the frame and its body to dst; it fills in length and bodyCRC.
func (c codec) append(dst []byte, f frame, body []byte) []byte {
	at := len(dst)
	dst = append(dst, frameMarker...)
	dst = append(dst, make([]byte, frameHead-len(frameMarker))...)
	b := dst[at:]
	le := binary.LittleEndian
	le.PutUint32(b[8:], crc32.Checksum(body, castagnoli))
	le.PutUint32(b[12:], uint32(len(body)))
	le.PutUint32(b[16:], f.index)
	le.PutUint32(b[20:], f.count)
	le.PutUint64(b[24:], f.sequence)
	le.PutUint64(b[32:], uint64(f.time))
	le.PutUint32(b[4:], crc32.Update(c.seed, castagnoli, b[8:]))
	return append(dst, body...)
}

// decode reads a frame's head of frameHead bytes and reports whether it is one.
func (c codec) decode(b []byte) (frame, bool) {
	le := binary.LittleEndian
	if string(b[:4]) != frameMarker || le.Uint32(b[4:]) != crc32.Update(c.seed, castagnoli, b[8:frameHead]) {
		return frame{}, false
	}
	f := frame{
		bodyCRC:  le.Uint32(b[8:]),
		length:   le.Uint32(b[12:]),
		index:    le.Uint32(b[16:]),
		count:    le.Uint32(b[20:]),
		sequence: le.Uint64(b[24:]),
		time:     int64(le.Uint64(b[32:])),
	}
	return f, f.length <= MaxBody && f.index < f.count && uint64(f.index) < f.sequence
}
