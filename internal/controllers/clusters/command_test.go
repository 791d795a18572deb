package clusters_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/tracetest"
)

// drover runs a command as the user, in the test's own directory.
func (w *world) drover(args ...string) {
	w.Helper()
	if out, code := w.tryDrover(args...); code != 0 {
		w.Fatalf("drover %s ended with %d:\n%s", strings.Join(args, " "), code, out)
	}
}

// tryDrover runs a command as the user, and returns its output and its exit code.
func (w *world) tryDrover(args ...string) (output string, code int) {
	w.Helper()
	kubeconfig := kubetest.AsKubeconfig(plane.server.Config)
	for _, who := range kubeconfig.AuthInfos {
		who.Impersonate, who.ImpersonateGroups = userName, []string{"system:authenticated"}
	}
	file := filepath.Join(w.TempDir(), "developer.kubeconfig")
	w.must(clientcmd.WriteToFile(*kubeconfig, file))
	var out bytes.Buffer
	root := cli.NewCommand(&ui.IO{In: strings.NewReader(""), Out: &out, Err: &out})
	root.SetArgs(append(args, "--kubeconfig", file))
	code = ui.Report(&out, root.ExecuteContext(w.Context()))
	return out.String(), code
}

// spec writes manifests to a file.
func (w *world) spec(manifests string, edit ...string) string {
	w.Helper()
	text := strings.ReplaceAll(strings.NewReplacer(edit...).Replace(manifests), "metadata: {", "metadata: {namespace: "+w.ns+", ")
	file := filepath.Join(w.TempDir(), "spec.yaml")
	w.must(os.WriteFile(file, []byte(text), 0o600))
	return file
}

// traced collects the spans of commands and of the manager.
func traced(t *testing.T) *tracetest.Collector {
	t.Helper()
	c := tracetest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	return c
}

// checkOneTrace checks that a command and the manager's stages for it are in one trace.
func (w *world) checkOneTrace(c *tracetest.Collector, command string, stages ...string) {
	w.Helper()
	w.until("the trace of "+command, func() error {
		byCommand, found := map[string]tracetest.Span{}, map[string]bool{}
		spans := c.Spans()
		trace := ""
		for _, s := range spans {
			if s.Service == "drover" {
				byCommand[s.ID] = s
			}
			if s.Service == "drover" && s.Name == command {
				trace = s.Trace
			}
		}
		for _, s := range spans {
			if s.Service == "drover-manager" && s.Trace == trace && byCommand[s.Parent].Trace == trace {
				found[s.Name] = true
			}
		}
		for _, stage := range stages {
			if !found[stage] {
				return fmt.Errorf("trace %q has no span %q below one of the command: %v", trace, stage, found)
			}
		}
		return nil
	})
}
