package install

import (
	"testing"

	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestDefaultNamespaceRejectsValuesThatGrow(t *testing.T) {
	archive := artifacttest.Chart(t, "app", "1.0.0", map[string]string{"values.yaml": yamltest.Text()})
	yamltest.Attack(t, func() error { _, err := defaultNamespace(archive); return err })
}
