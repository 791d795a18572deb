package plane

import (
	"os"
	"testing"
)

func TestUnservedEtcdDataIsRemoved(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log := h.path("etcd", "member", "wal", "0.wal")
	has := func() bool { _, err := os.Stat(log); return err == nil }

	must(h.clearUnserved())
	write(t, log, "a log without a member")
	must(h.clearUnserved())
	if has() {
		t.Error("the log of a start that was cut short is kept: etcd would wait for its members for ever")
	}

	write(t, log, "data")
	must(h.markServed())
	must(h.clearUnserved())
	if !has() {
		t.Error("the data of etcd was removed, want it kept")
	}
}

func TestForeignEtcdDataIsKept(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	log := h.path("etcd", "member", "wal", "0.wal")
	write(t, log, "of a backup")
	for range 2 {
		if err := h.clearUnserved(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the restored data was removed: %v", err)
	}
}
