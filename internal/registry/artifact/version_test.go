package artifact

import (
	"errors"
	"testing"
)

func TestChoose(t *testing.T) {
	published := []string{"1.2.3", "1.10.0", "2.0.0-rc.1", "1.9.9", "0.1.0", "not-a-version", "v3.0.0-beta", "1.2.4+build.5"}
	for _, c := range []struct {
		name, wanted, chosen string
		fails                error
	}{
		{name: "empty is the newest stable one", chosen: "1.10.0"},
		{name: "a star is the same", wanted: "*", chosen: "1.10.0"},
		{name: "an exact version", wanted: "1.2.3", chosen: "1.2.3"},
		{name: "an exact version with a v that is published without", wanted: "v1.2.3", chosen: "1.2.3"},
		{name: "an exact version without a v that is published with one", wanted: "3.0.0-beta", chosen: "v3.0.0-beta"},
		{name: "an exact pre-release", wanted: "2.0.0-rc.1", chosen: "2.0.0-rc.1"},
		{name: "build metadata that was not asked for", wanted: "1.2.4", chosen: "1.2.4+build.5"},
		{name: "build metadata that was asked for", wanted: "1.2.4+build.5", chosen: "1.2.4+build.5"},
		{name: "a caret", wanted: "^1.2.0", chosen: "1.10.0"},
		{name: "a tilde", wanted: "~1.2.0", chosen: "1.2.4+build.5"},
		{name: "two numbers are any patch of them", wanted: "1.9", chosen: "1.9.9"},
		{name: "bounds", wanted: ">=1.0.0, <1.10.0", chosen: "1.9.9"},
		{name: "a range that names a pre-release", wanted: ">=2.0.0-0, <3.0.0-0", chosen: "2.0.0-rc.1"},
		{name: "a range of which there are pre-releases only", wanted: ">=2.0.0", fails: ErrNotFound},
		{name: "a version that is not there", wanted: "7.7.7", fails: ErrNotFound},
		{name: "a word that is there", wanted: "not-a-version", chosen: "not-a-version"},
		{name: "a word that is not there", wanted: "another word", fails: ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, err := choose(c.wanted, published)
			if chosen != c.chosen || !errors.Is(err, c.fails) {
				t.Errorf("chose %q, error %v; want %q, %v", chosen, err, c.chosen, c.fails)
			}
		})
	}
	if _, err := choose("", []string{"1.0.0-alpha"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pre-release was chosen as stable: %v", err)
	}
}

func TestIsFinal(t *testing.T) {
	for version, final := range map[string]bool{
		"1.2.3": true, "v1.2.3": true, "1.2.3-rc.1+b": true, digestPrefix + "ab": true,
		"": false, "1.2": false, "1": false, "^1.2.3": false, "=1.2.3": false, "latest": false, "*": false,
	} {
		if isFinal(version) != final {
			t.Errorf("%q is final: %v", version, !final)
		}
	}
}
