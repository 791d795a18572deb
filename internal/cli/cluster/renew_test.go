package cluster

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

func TestComponentsOf(t *testing.T) {
	for flag, want := range map[string]string{"": "", "etcd": "etcd", "control-plane": "control-plane"} {
		got, err := componentsOf(flag)
		if err != nil || len(got) > 1 || want != "" && got[0] != lifecycle.Component(want) || want == "" && got != nil {
			t.Errorf("%q: %v, %v", flag, got, err)
		}
	}
	if _, err := componentsOf("workers"); err == nil || !strings.Contains(err.Error(), "use etcd or control-plane") {
		t.Errorf("unknown component: %v", err)
	}
}
