package userdir

import "testing"

func TestFind(t *testing.T) {
	t.Setenv("HOME", "/home/shepherd")
	t.Setenv("DROVER_TEST_DIR", "")
	if got, want := Find("DROVER_TEST_DIR", ".flock"), "/home/shepherd/.flock"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	t.Setenv("DROVER_TEST_DIR", "/srv/flock")
	if got, want := Find("DROVER_TEST_DIR", ".flock"), "/srv/flock"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	t.Setenv("DROVER_TEST_DIR", "")
	t.Setenv("HOME", "")
	if got, want := Find("DROVER_TEST_DIR", ".flock"), "/.flock"; got != want {
		t.Errorf("without a home directory: got %q, want %q", got, want)
	}
}

func TestExpand(t *testing.T) {
	t.Setenv("HOME", "/home/shepherd")
	t.Chdir("/tmp")
	for path, want := range map[string]string{"~/.ssh/id": "/home/shepherd/.ssh/id", "key": "/tmp/key", "/srv/key": "/srv/key", "": "", "~other/key": "/tmp/~other/key"} {
		if got, err := Expand(path); err != nil || got != want {
			t.Errorf("%q: got %q and %v, want %q", path, got, err, want)
		}
	}
}
