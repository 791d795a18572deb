package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCode(t *testing.T) {
	text := "Run `drover up`, or `drover\ndown`.\n| `drover create\\|delete cluster` |\n```sh\nx=`date`\n```\n"
	if diff := cmp.Diff([]string{"drover up", "drover down", "drover create|delete cluster"}, Code(text)); diff != "" {
		t.Errorf("code (-want +got):\n%s", diff)
	}
}

func TestAlternatives(t *testing.T) {
	for command, want := range map[string][]string{
		"drover up":                    {"drover up"},
		"drover create|delete cluster": {"drover create cluster", "drover delete cluster"},
		"drover a|b c|d":               {"drover a c", "drover a d", "drover b c", "drover b d"},
		"drover a | sort":              {"drover a | sort"},
		"drover a || b":                {"drover a || b"},
	} {
		if diff := cmp.Diff(want, Alternatives(command)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}
