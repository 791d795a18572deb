package background

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary act as the background process.
func TestMain(m *testing.M) {
	if os.Args[0] == "drover" {
		speak()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func speak() {
	session, _ := unix.Getsid(0)
	fmt.Println("out", os.Args[1:], session == os.Getpid())
	fmt.Fprintln(os.Stderr, "err")
	_, _ = os.NewFile(3, "pipe").WriteString("through the pipe")
}

func TestStart(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "logs", "some.log")
	cmd, err := Start(Options{Args: []string{"be", "quiet"}, Log: log, Files: []*os.File{write}})
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	said, err := io.ReadAll(read)
	if err != nil || string(said) != "through the pipe" {
		t.Errorf("got %q from the pipe, error %v", said, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	logged, err := os.ReadFile(log)
	if err != nil || string(logged) != "out [be quiet] true\nerr\n" {
		t.Errorf("got log %q, error %v", logged, err)
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log is not private: %v (%v)", info.Mode(), err)
	}
}

func TestUnwritableLogIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Options{Log: filepath.Join(file, "some.log")}); err == nil {
		t.Error("it starts")
	}
}
