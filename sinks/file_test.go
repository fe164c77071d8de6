package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("text"), 0o600), os.WriteFile(at("large"), make([]byte, maxFileBytes+1), 0o600),
		os.WriteFile(at("most"), make([]byte, maxFileBytes), 0o600),
		os.Symlink("data", at("..data")), os.Mkdir(at("data"), 0o700), os.WriteFile(at("data/key"), []byte("mounted"), 0o600),
		os.Symlink("..data/key", at("key")), os.Symlink("nowhere", at("loose")), os.Symlink("loop", at("loop")), syscall.Mkfifo(at("pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": "text", "key": "mounted", "most": strings.Repeat("\x00", maxFileBytes)} {
		if text, err := ReadFile(at(name)); err != nil || string(text) != want {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	for name, want := range map[string]string{
		"none": "there is no such file; put it there", "loose": "there is no such file", "file/below": "cannot be read (not a directory)", "loop": "cannot be read (",
		"": "is a folder; name a file", "pipe": "is a pipe or a device; name a file", "large": "has more than 1048576 bytes; see whether",
	} {
		done := make(chan error, 1)
		go func() {
			_, err := ReadFile(at(name))
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), dir) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: still reading after a minute", name)
		}
	}
	if _, err := ReadFile(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not tell that there is no file", err)
	}
}

// Not by a file of mode 0, which root reads.
func TestUnreadableFile(t *testing.T) {
	err := unreadable(&fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES})
	if err.Error() != "may not be read; let the user that the bridge runs as read it" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}
