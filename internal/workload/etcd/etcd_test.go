package etcd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/test/etcdtest"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func open(t *testing.T, e *etcdtest.Etcd) *etcd.Etcd {
	t.Helper()
	out, err := etcd.Open(t.Context(), e.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dial returns a client of a member.
func dial(t *testing.T, e *etcdtest.Etcd, url string) *clientv3.Client {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(e.Dir, "server.crt"), filepath.Join(e.Dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{url}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: e.Authority.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func put(t *testing.T, c *clientv3.Client, key, value string) int64 {
	t.Helper()
	r, err := c.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

func TestMembersReportRoleSizeAndHealth(t *testing.T) {
	e := etcdtest.Start(t, 3)
	put(t, dial(t, e, e.Members[0].Client), "a", "b")
	members, err := open(t, e).Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for i, m := range members {
		roles[m.Role]++
		if m.Name != e.Members[i].Name || m.Address != e.Members[i].Client || m.DBSize == 0 || m.DBInUse == 0 || m.RaftIndex == 0 || m.Health != etcd.Healthy {
			t.Errorf("member %+v is incomplete", m)
		}
	}
	if roles[etcd.Leader] != 1 || roles[etcd.Follower] != 2 {
		t.Errorf("roles %v, want one leader and two followers", roles)
	}
	e.Stop(2)
	members, err = open(t, e).Members(t.Context())
	if err != nil || members[2].Role != "" || !strings.HasPrefix(members[2].Health, "doesn't respond") {
		t.Errorf("a stopped member is reported as %+v (%v)", members[2], err)
	}
	if err := open(t, e).Defrag(t.Context(), func(d etcd.Defragmented) { t.Errorf("%+v was defragmented beside an unhealthy member", d) }); err == nil || !strings.Contains(err.Error(), `member "m2" is unhealthy`) {
		t.Errorf("defragmenting with a stopped member: %v", err)
	}
}

func TestDefragShrinksEveryMemberWithTheLeaderLast(t *testing.T) {
	e := etcdtest.Start(t, 3)
	c := dial(t, e, e.Members[0].Client)
	var last int64
	for i := range 200 {
		last = put(t, c, "big", strings.Repeat(strconv.Itoa(i), 20_000))
	}
	if _, err := c.Compact(t.Context(), last, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	before, err := open(t, e).Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	if err := open(t, e).Defrag(t.Context(), func(d etcd.Defragmented) {
		order = append(order, d.Name)
		if d.After >= d.Before {
			t.Errorf("member %s has %d bytes after %d", d.Name, d.After, d.Before)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range before {
		if m.Role == etcd.Leader && order[len(order)-1] != m.Name {
			t.Errorf("order %v, want the leader %s last", order, m.Name)
		}
	}
	if len(order) != 3 {
		t.Errorf("defragmented %v, want all members", order)
	}
}

func TestSnapshotIsWhatEtcdRestores(t *testing.T) {
	e := etcdtest.Start(t, 1)
	c := dial(t, e, e.Members[0].Client)
	put(t, c, "before", "1")
	s, err := open(t, e).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, c, "after", "1")
	var data bytes.Buffer
	n, err := s.WriteTo(&data)
	if err != nil || n != s.Size || int64(data.Len()) != s.Size || s.Revision == 0 || s.Version == "" {
		t.Fatalf("%d bytes of %+v: %v", n, s, err)
	}
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	e.Stop(0)
	if err := os.RemoveAll(e.Members[0].Dir); err != nil {
		t.Fatal(err)
	}
	out, err := e.Binary.Command(t.Context(), "etcdutl", "snapshot", "restore", file, "--data-dir", e.Members[0].Dir, "--name", e.Members[0].Name,
		"--initial-cluster", e.InitialCluster(), "--initial-advertise-peer-urls", e.Members[0].Peer).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e.Run(0)
	e.AwaitHealthy()
	got, err := dial(t, e, e.Members[0].Client).Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Key) != "before" {
		t.Errorf("the restored etcd has %v (%v), want what was there when the snapshot was requested", got, err)
	}
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestSnapshotReportsAFullDiskAndALostMember(t *testing.T) {
	e := etcdtest.Start(t, 1)
	put(t, dial(t, e, e.Members[0].Client), "big", strings.Repeat("x", 1_000_000))
	s, err := open(t, e).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteTo(&failing{left: 50_000}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
	s.Close() // Etcd waits for streams when it stops.
	e.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := open(t, e).Snapshot(ctx); err == nil || !strings.Contains(err.Error(), "listing the members of etcd") {
		t.Errorf("without etcd, got %v", err)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	database := bytes.Repeat([]byte("database"), 512)
	sum := sha256.Sum256(database)
	good := append(bytes.Clone(database), sum[:]...)
	flipped := bytes.Clone(good)
	flipped[100] ^= 1
	for name, tt := range map[string]struct {
		content []byte
		ok      bool
	}{
		"complete":         {good, true},
		"one bit flipped":  {flipped, false},
		"truncated":        {good[:len(good)-1], false},
		"without checksum": {database, false},
		"a page is lost":   {append(bytes.Clone(database[512:]), sum[:]...), false},
		"empty":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 31, 32, 33, 1 << 20} {
				c := etcd.NewCheck()
				for rest := tt.content; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					_, _ = c.Write(rest[:min(piece, len(rest))])
				}
				if err := c.Verify(); (err == nil) != tt.ok || err != nil && !errors.Is(err, etcd.ErrDamagedSnapshot) {
					t.Errorf("in pieces of %d bytes: %v", piece, err)
				}
			}
		})
	}
}

func TestMissingSecretsAndForeignControlPlanesAreNamed(t *testing.T) {
	e := etcdtest.Start(t, 1)
	c := e.Objects.(client.Client)
	if err := c.Delete(t.Context(), secret("dev-apiserver-etcd-client")); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Open(t.Context(), e.Cluster); err == nil || !strings.Contains(err.Error(), `"dev-apiserver-etcd-client" not found`) {
		t.Errorf("without the client certificate: %v", err)
	}
	missing := e.Cluster
	missing.Name = "other"
	if _, err := etcd.Open(t.Context(), missing); err == nil || !strings.Contains(err.Error(), `reading cluster "default/other"`) {
		t.Errorf("another cluster: %v", err)
	}
}

func secret(name string) *corev1.Secret {
	s := &corev1.Secret{}
	s.Namespace, s.Name = "default", name
	return s
}
