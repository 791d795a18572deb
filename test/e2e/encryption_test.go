package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// canary is a word that must never be on disk.
const canary = "canary-b1f7c0de-in-the-coal-mine"

// testEncryption creates a Secret that later steps check, and replaces the key of the plane.
func testEncryption(t *testing.T, p *plane) {
	secret, err := p.kubernetes().CoreV1().Secrets("default").Create(ctx(t), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"}, StringData: map[string]string{"word": canary},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	noPlaintext(t, p)
	before := keysOf(t, p)
	p.must("encryption", "rotate")
	after := keysOf(t, p)
	if strings.Count(after, "secret: ") != 1 || after == before {
		t.Errorf("rotation left these keys:\n%s", after)
	}
	noPlaintext(t, p)
	sameSecret(t, p, secret.UID)
	exitedOnRequest(t, p, "kube-apiserver")
}

// exitedOnRequest checks that the supervisor did not have to kill a component that it restarted.
func exitedOnRequest(t *testing.T, p *plane, component string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(p.home, "logs", component+".log"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte(component+" did not exit within")) {
		t.Errorf("%s did not exit when it was asked to", component)
	}
}

// testRestore restores a backup to another home. It leaves the plane stopped.
func testRestore(t *testing.T, p *plane) {
	secret, err := p.kubernetes().CoreV1().Secrets("default").Get(ctx(t), "canary", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plane.backup")
	p.must("backup", file)
	p.refused("already exists", "backup", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(canary)) {
		t.Error("the backup holds the secret in plain text")
	}
	restoreRefusals(t, p, file, data)

	restored := newPlane(t)
	restored.must("restore", file)
	restored.must("up")
	sameSecret(t, restored, secret.UID)
	noPlaintext(t, restored)
	if p.status().Phase != "Ready" || p.status().API == restored.status().API {
		t.Errorf("two homes do not live side by side: %s at %s beside %s", p.status().Phase, p.status().API, restored.status().API)
	}
	p.must("down")
	sameSecret(t, restored, secret.UID)
	p.refused("not running", "encryption", "rotate")
	p.refused("not running", "backup", file+"2")
	testPurge(t, restored)
}

// testLostHome starts the plane, which is stopped, with scheduled backups, loses its home, and
// restores it from one of them, with what is beside the home.
func testLostHome(t *testing.T, p *plane) {
	p.must("up", "--backup-interval", "1m")
	secret, err := p.kubernetes().CoreV1().Secrets("default").Get(ctx(t), "canary", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	p.await("a backup is made", func() bool {
		files, _ = filepath.Glob(p.home + "-backups/*.backup")
		return len(files) > 0 && strings.Contains(p.must("status").stdout, filepath.Base(files[0]))
	})
	data, err := os.ReadFile(files[0])
	if err != nil || bytes.Contains(data, []byte(canary)) {
		t.Errorf("%v: the backup holds the secret in plain text", err)
	}
	kill(t, p.status().pids()...)
	p.await("all processes are gone", func() bool { return len(processes(p.home)) == 0 })
	if err := os.RemoveAll(p.home); err != nil {
		t.Fatal(err)
	}
	key, ca := filepath.Join(p.home+"-recovery", "identity.txt"), filepath.Join(p.home+"-recovery", "ca.crt")
	p.refused("wrong passphrase or identity", "restore", files[0], "--signed-by", ca)
	p.must("restore", files[0], "--identity", key, "--signed-by", ca)
	p.must("up")
	sameSecret(t, p, secret.UID)
	noPlaintext(t, p)
}

func restoreRefusals(t *testing.T, p *plane, file string, data []byte) {
	t.Helper()
	p.refused("is not empty", "restore", file)
	target := filepath.Join(t.TempDir(), "target")
	q := &plane{t: t, home: target}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("battery staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q.refused("wrong passphrase or identity", "restore", file, "--passphrase-file", wrong)
	for name, content := range map[string][]byte{"truncated": data[:len(data)-1], "halved": data[:len(data)/2], "empty": nil, "garbage": []byte("not a backup")} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		q.refused("nothing was restored", "restore", path)
	}
	left, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(left) != 0 {
		t.Errorf("refused restores left %v (%v)", left, err)
	}
}

// sameSecret checks that a plane has the Secret with the canary.
func sameSecret(t *testing.T, p *plane, want types.UID) {
	t.Helper()
	got, err := p.kubernetes().CoreV1().Secrets("default").Get(ctx(t), "canary", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != want || string(got.Data["word"]) != canary {
		t.Errorf("secret %s is %s with %q, want %s with the canary", got.Name, got.UID, got.Data["word"], want)
	}
}

func keysOf(t *testing.T, p *plane) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.home, "encryption", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noPlaintext searches every file of etcd, its log and its database.
func noPlaintext(t *testing.T, p *plane) {
	t.Helper()
	read := 0
	err := filepath.WalkDir(filepath.Join(p.home, "etcd"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read += len(data)
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s holds the secret in plain text", path)
		}
		if strings.HasSuffix(path, "/snap/db") && !bytes.Contains(data, []byte("k8s:enc:secretbox:v1:key-")) {
			t.Errorf("%s holds nothing that was encrypted", path)
		}
		return nil
	})
	if err != nil || read == 0 {
		t.Fatalf("read %d bytes of etcd: %v", read, err)
	}
}
