package guest

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	r := readiness{conn: conn, path: path}
	defer r.close()
	if r.await(10 * time.Millisecond) {
		t.Error("a service without a notification is ready, want not ready")
	}
	client, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, message := range []string{"STATUS=loading", "STATUS=done\nREADY=1\n"} {
		if _, err := client.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	if !r.await(time.Minute) {
		t.Error("a service that notified is not ready, want ready")
	}
	if !(readiness{}).await(0) {
		t.Error("a service without notifications is not ready, want ready")
	}
}
