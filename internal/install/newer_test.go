package install

import "testing"

func TestNewer(t *testing.T) {
	for _, tc := range []struct {
		name, installed, own string
		want                 bool
	}{
		{"the same release", "v1.2.0", "v1.2.0", false},
		{"an older release is there", "v1.1.0", "v1.2.0", false},
		{"a newer patch is there", "v1.2.1", "v1.2.0", true},
		{"a newer minor is there", "v1.10.0", "v1.9.0", true},
		{"the release of our candidate is there", "v1.2.0", "v1.2.0-rc.1", true},
		{"a development build is there", "v0.0.0-dev", "v1.2.0", false},
		{"we are a development build", "v1.2.0", "v0.0.0-dev", false},
		{"nothing says what is there", "", "v1.2.0", false},
		{"what is there makes no sense", "latest", "v1.2.0", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := newer(tc.installed, tc.own); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
