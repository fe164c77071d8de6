package journal

import "fmt"

// pencil is what the holder of the pen works with.
type pencil struct {
	tail *segment // the last one, which is written to
	file appender // the tail's
	buf  []byte   // of the last group, to be used again
	// dirty says that bytes behind the tail's end could not be cut after a failed
	// write. A later write that is shorter would leave some of them behind it.
	dirty bool
	// turning says that a new segment was begun and may be on the disk: nothing
	// may be added to the old one any more.
	turning bool
}

// writeGroup writes all bodies of the calls as one group and syncs it. On an
// error nothing of it is in the log. The caller holds the pen.
func (j *Journal) writeGroup(calls []*call) error {
	if err := j.held(); err != nil {
		return err
	}
	if err := j.cut(); err != nil {
		return err
	}
	var size int64
	for _, c := range calls {
		size += c.size
	}
	if j.turning || !j.tail.empty() && j.tail.size+size > j.o.SegmentBytes {
		if err := j.turn(); err != nil {
			return err
		}
	}
	now := max(j.o.Now().UnixNano(), j.tail.time)
	next := j.encode(calls, j.tail.next, now)
	if err := j.commit(j.tail.size); err != nil {
		j.dirty = true
		_ = j.cut() // if it fails, the next write tries again before it begins
		return err
	}
	j.advance(extent{next, j.tail.size + size, now})
	return nil
}

// encode fills buf with the frames of the calls, and tells the calls their
// sequences.
func (j *Journal) encode(calls []*call, next uint64, now int64) uint64 {
	f := frame{time: now}
	for _, c := range calls {
		f.count += uint32(len(c.bodies))
	}
	if cap(j.buf) > spareBytes {
		j.buf = nil
	}
	j.buf = j.buf[:0]
	for _, c := range calls {
		c.first = next
		for _, b := range c.bodies {
			f.sequence = next
			j.buf = j.codec.append(j.buf, f, b)
			f.index++
			next++
		}
	}
	return next
}

// commit puts buf at the end of the tail, durably.
func (j *Journal) commit(at int64) error {
	if _, err := j.file.WriteAt(j.buf, at); err != nil {
		return fmt.Errorf("write segment %s: %w", j.tail.path, err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync segment %s: %w", j.tail.path, err)
	}
	return nil
}

// cut removes what a failed write left behind the tail's end.
func (j *Journal) cut() error {
	if !j.dirty {
		return nil
	}
	if err := j.file.Truncate(j.tail.size); err != nil {
		return fmt.Errorf("cut failed write from segment %s: %w", j.tail.path, err)
	}
	j.dirty = false
	return nil
}

// advance lets readers see a group that is durable.
func (j *Journal) advance(to extent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	tail := j.tail
	tail.index.add(tail.next, tail.size)
	tail.next, tail.size, tail.time = to.next, to.end, to.time
	j.next = to.next
	j.wake()
}

// turn begins a new segment.
func (j *Journal) turn() error {
	j.turning = true
	old := j.tail
	s, f, err := j.disk.createSegment(j.dir, header{
		version:   formatVersion,
		journal:   j.id,
		first:     old.next,
		prevFirst: old.head.first,
		prevSize:  old.size,
		prevTime:  old.time,
	})
	if err != nil {
		return err
	}
	if err := j.file.Close(); err != nil {
		j.o.Log.Warn("cannot close a finished segment", "file", old.path, "err", err)
	}
	j.tail, j.file, j.turning = s, f, false
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments = append(j.segments, s)
	select {
	case j.turned <- struct{}{}:
	default: // nobody has looked since the last time
	}
	return nil
}
