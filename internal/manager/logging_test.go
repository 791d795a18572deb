package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestJSONLogsAreOneObjectPerLine(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out, logJSON, 0)
	log.WithName("a").Info("first", "key", "value")
	log.Error(errors.New("broken"), "second")
	log.V(1).Info("not this one")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %q", lines)
	}
	for i, want := range []map[string]any{
		{"msg": "first", "level": "INFO", "logger": "a", "key": "value"},
		{"msg": "second", "level": "ERROR", "err": "broken"},
	} {
		got := map[string]any{}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("line %d: %s is %v, want %v", i, key, got[key], value)
			}
		}
	}
}

func TestVerbosity(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(&out, logText, 4)
	log.V(4).Info("shown")
	log.V(5).Info("hidden")
	if got := out.String(); !strings.Contains(got, "level=INFO msg=shown") || strings.Contains(got, "hidden") {
		t.Errorf("got %q", got)
	}
}

func TestFrameworkLogsOnlyWhenVerbose(t *testing.T) {
	for verbosity, want := range map[int]int{0: 2, 1: 4} {
		var out bytes.Buffer
		log := newLogger(&out, logText, verbosity)
		framework := log.WithName("controller-runtime").WithName("webhook")
		framework.Info("Registering webhook")
		framework.Error(errors.New("x"), "Trouble is never hidden")
		log.WithValues("source", "kind").Info("Starting EventSource", "controller", "cluster")
		log.Info("Ours")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("verbosity %d: %d lines, want %d:\n%s", verbosity, got, want, out.String())
		}
	}
}
