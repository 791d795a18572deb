package host

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCollectedProgramsRunInAnotherRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes the root directory")
	}
	files, err := Collect(Request{Required: []string{"bash", "ls"}})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := files.CopyTo(root); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "lib", "lib64"} {
		os.Symlink("usr/"+dir, filepath.Join(root, dir))
	}
	out, err := exec.Command("chroot", root, "bash", "-c", "ls /usr/bin").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "bash") {
		t.Errorf("bash and ls in a root of their own: %v\n%s", err, out)
	}
}

func TestCollectReportsMissingPrograms(t *testing.T) {
	_, err := Collect(Request{Required: []string{"sh", "no-such-program"}, Optional: []string{"no-such-program-either"}})
	var missing *MissingError
	if !errors.As(err, &missing) || !slices.Equal(missing.Programs, []string{"no-such-program"}) {
		t.Errorf("got error %v, want a %T", err, missing)
	}
	if got := packagesOf([]string{"nft", "sshd", "socat", "iptables", "ip6tables"}); !slices.Equal(got, []string{"iptables", "nftables", "openssh-server", "socat"}) {
		t.Errorf("packages %v", got)
	}
}

func TestWriteTarIsReproducible(t *testing.T) {
	files, err := Collect(Request{Required: []string{"sh"}})
	if err != nil {
		t.Fatal(err)
	}
	archive := func() []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(files.WriteTar(w), w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := archive()
	if !bytes.Equal(first, archive()) {
		t.Error("two archives of the same files differ")
	}
	names := 0
	for r := tar.NewReader(bytes.NewReader(first)); ; names++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if names < 3 {
		t.Errorf("%d entries, want directories, a shell and its libraries", names)
	}
}
