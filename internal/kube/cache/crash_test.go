package cache

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hangIn makes the test binary simulate a process that hangs while it fills a cache entry in that
// directory.
const hangIn = "DROVER_TEST_HANG_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(hangIn); dir != "" {
		hang(dir)
		return
	}
	os.Exit(m.Run())
}

func hang(dir string) {
	_, err := Cache{Dir: dir}.Create(context.Background(), Request{
		Name: "v1.2.3-k",
		Fill: func(_ context.Context, dir string) (Manifest, error) {
			if err := os.WriteFile(filepath.Join(dir, "kube"), []byte("half"), 0o600); err != nil {
				return Manifest{}, err
			}
			fmt.Println("filling")
			select {}
		},
	})
	fmt.Println(err)
}

func TestCreateAfterKilledFill(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), hangIn+"="+c.Dir)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "filling\n" {
		t.Fatalf("the other process said %q", line)
	}

	waited := false
	e, err := c.Create(t.Context(), Request{
		Name: "v1.2.3-k",
		Fill: fill("v1.2.3", "whole"),
		Waiting: func() {
			waited = true
			if err := other.Process.Kill(); err != nil {
				t.Error(err)
			}
			other.Wait()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !waited {
		t.Error("it did not wait for the process that was filling")
	}
	if data, err := os.ReadFile(e.Binary()); err != nil || string(data) != "whole" {
		t.Errorf("the binary holds %q (%v)", data, err)
	}
	if diff := cmp.Diff([]string{"v1.2.3-k"}, directories(t, c)); diff != "" {
		t.Errorf("unexpected directories (-want +got):\n%s", diff)
	}
}
