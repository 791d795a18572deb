package bundle_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestParsersRejectTextsThatGrow(t *testing.T) {
	for name, read := range map[string]func() error{
		"a bundle": func() error { _, err := bundle.Parse([]byte(published + yamltest.Text())); return err },
		"a config": func() error { _, err := bundle.ParseConfig(yamltest.Text()); return err },
	} {
		t.Run(name, func(t *testing.T) { yamltest.Attack(t, read) })
	}
}
