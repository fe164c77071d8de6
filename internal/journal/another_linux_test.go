package journal

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"sparkbridge/internal/usertest"
)

// A directory that may not be written to is told by its name, and what to do.
func TestADirectoryOfAnother(t *testing.T) {
	dir := usertest.Folder(t)
	open := func() {
		if _, err := Open(dir, Options{}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir+" (journal.dir must name") {
			t.Errorf("opened with %v", err)
		}
	}
	if os.Geteuid() == 0 {
		usertest.AsNobody(t, open)
		return
	}
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // a directory needs x
		t.Fatal(err)
	}
	open()
}
