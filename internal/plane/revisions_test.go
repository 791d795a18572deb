package plane

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/drover-dev/drover/internal/kube"
)

// TestRestoredEtcdNeverReissuesRevisions restores a snapshot that is older than what the plane has
// written since, and the same snapshot again after the restored plane has written, too. Revisions
// are the resource versions of the plane's objects.
func TestRestoredEtcdNeverReissuesRevisions(t *testing.T) {
	binary, err := kube.Find(kube.FindOptions{})
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	before, stop := serveEtcd(t, binary, filepath.Join(dir, "before"))
	put(t, before, 3)
	stream, err := before.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	last := put(t, before, 50)
	stop()

	created := time.Now().Add(-time.Hour)
	for _, now := range []time.Time{created.Add(time.Minute), created.Add(time.Minute + time.Second)} {
		home := filepath.Join(dir, now.String())
		write(t, filepath.Join(home, snapshotName), string(snapshot))
		if err := restoreEtcd(t.Context(), binary, home, RevisionsAhead(created, now)); err != nil {
			t.Fatal(err)
		}
		after, stop := serveEtcd(t, binary, filepath.Join(home, "etcd"))
		if got := put(t, after, 1); got <= last {
			t.Errorf("a write after the restore has revision %d, but %d was issued before", got, last)
		}
		expectCompacted(t, after, last)
		last = put(t, after, 50)
		stop()
	}
}

// expectCompacted checks that a client that knows an earlier revision must list again, instead of
// waiting for the next one.
func expectCompacted(t *testing.T, c *clientv3.Client, revision int64) {
	t.Helper()
	select {
	case answer := <-c.Watch(t.Context(), "key", clientv3.WithRev(revision)):
		if answer.CompactRevision == 0 {
			t.Errorf("a watch from an earlier revision gets %+v", answer)
		}
	case <-time.After(30 * time.Second):
		t.Error("a watch from an earlier revision waits")
	}
}

func TestRevisionsAheadGrowWithTheAgeOfABackup(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		now  time.Time
		want int64
	}{
		{"at once", created, 1_000_000_000},
		{"an hour later", created.Add(time.Hour), 1_036_000_000},
		{"by a clock that is behind", created.AddDate(-1, 0, 0), 1_000_000_000},
	} {
		if got := RevisionsAhead(created, tt.now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// put writes n times and returns the last revision.
func put(t *testing.T, c *clientv3.Client, n int) int64 {
	t.Helper()
	var revision int64
	for i := range n {
		response, err := c.Put(t.Context(), "key", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		revision = response.Header.Revision
	}
	return revision
}

// serveEtcd runs an etcd without TLS until stop or the end of the test.
func serveEtcd(t *testing.T, binary kube.Binary, data string) (c *clientv3.Client, stop func()) {
	t.Helper()
	address := make([]string, 2)
	for i := range address {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address[i] = "http://" + l.Addr().String()
		_ = l.Close()
	}
	cmd := binary.Command(t.Context(), "etcd", "--name", "drover", "--data-dir", data, "--log-level", "error",
		"--listen-client-urls", address[0], "--advertise-client-urls", address[0], "--listen-peer-urls", address[1],
		"--initial-advertise-peer-urls", address[1], "--initial-cluster", "drover="+address[1])
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	c, err := clientv3.New(clientv3.Config{Endpoints: address[:1], DialTimeout: 30 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, stop
}
