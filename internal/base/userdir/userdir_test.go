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
