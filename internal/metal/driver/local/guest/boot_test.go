package guest

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// Machines start services while they write the scripts that they run next.
func TestScriptRunsWhileOtherProcessesStart(t *testing.T) {
	dir := t.TempDir()
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command("/bin/true").Run()
				}
			}
		})
	}
	defer others.Wait()
	defer close(done)
	for i := range 200 {
		path := filepath.Join(dir, strconv.Itoa(i))
		if err := writeProgram(path, "#!/bin/sh\n"); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(path).Run(); err != nil {
			t.Fatalf("script %d: %v", i, err)
		}
	}
}
