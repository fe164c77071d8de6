package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServersEndWithTheirProgram kills a program that has started a server. The program is this
// test binary once more; with the lifeline alone it stands for systems where the kernel does
// nothing, and a process that the server started must go too.
func TestServersEndWithTheirProgram(t *testing.T) {
	if os.Getenv("SERVERS_TEST_CHILD") != "" {
		beChild(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestServersEndWithTheirProgram$", "-test.v")
	child.Env = append(os.Environ(), "SERVERS_TEST_CHILD="+t.TempDir())
	said, err := child.StdoutPipe()
	requireNoError(t, err)
	requireNoError(t, child.Start())
	var group, port int
	for lines := bufio.NewScanner(said); group == 0 && lines.Scan(); {
		if _, line, found := strings.Cut(lines.Text(), "server: "); found {
			_, err := fmt.Sscan(line, &group, &port)
			requireNoError(t, err)
		}
	}
	requireNoError(t, syscall.Kill(-group, 0))
	requireNoError(t, child.Process.Kill())
	_ = child.Wait()
	requireGone(t, group, port)
}

// beChild starts a server with a child of its own, says which, and waits to be killed.
func beChild(t *testing.T) {
	dir := os.Getenv("SERVERS_TEST_CHILD")
	port, err := FreePort()
	requireNoError(t, err)
	server := &process{command: command{name: "sleeper", path: "/bin/sh", args: []string{"-c", "sleep 600 & sleep 601"},
		dir: dir, output: "output.log", ready: func(ctx context.Context) error { return nil }}}
	requireNoError(t, server.start(t.Context()))
	fmt.Println("server: " + strconv.Itoa(server.Pid()) + " " + strconv.Itoa(port))
	time.Sleep(time.Minute)
}
