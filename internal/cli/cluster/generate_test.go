package cluster

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

// generate runs the command and returns what it prints.
func generate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newGenerate(&ui.IO{Out: &out})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestGeneratedSpecHasTheRequestedRole(t *testing.T) {
	tests := map[string]struct {
		args      []string
		workload  bool
		managedBy string
	}{
		"a management cluster by default":          {nil, false, "one"},
		"a workload cluster of any plane":          {[]string{"--workload"}, true, ""},
		"a workload cluster of a named cluster":    {[]string{"--management-cluster", "mgmt"}, true, "mgmt"},
		"both flags name a workload cluster":       {[]string{"--workload", "--management-cluster", "mgmt"}, true, "mgmt"},
		"--workload=false is a management cluster": {[]string{"--workload=false"}, false, "one"},
	}
	for name, tt := range tests {
		for _, provider := range providers {
			t.Run(name+" on "+provider, func(t *testing.T) {
				text, err := generate(t, append([]string{"one", "-p", provider}, tt.args...)...)
				if err != nil {
					t.Fatal(err)
				}
				config, violations := spec.Check([]byte(text))
				if len(violations) > 0 {
					t.Fatalf("the spec is invalid: %v\n%s", violations.Err(), text)
				}
				if c := config.Cluster; c.IsManaged() != tt.workload || c.ManagedBy() != tt.managedBy {
					t.Errorf("workload cluster: %v, managed by %q; want %v, %q", c.IsManaged(), c.ManagedBy(), tt.workload, tt.managedBy)
				}
			})
		}
	}
}

func TestGenerateRejectsConflictingFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no provider":                       {[]string{"one"}, "use one of docker, packet"},
		"an unknown provider":               {[]string{"one", "-p", "vsphere"}, "use one of docker, packet"},
		"an empty management cluster":       {[]string{"one", "-p", "docker", "--management-cluster", ""}, "requires the name of a cluster"},
		"a cluster that manages itself":     {[]string{"one", "-p", "docker", "--management-cluster", "one"}, "is the cluster itself"},
		"not a workload cluster, yet of m":  {[]string{"one", "-p", "docker", "--workload=false", "--management-cluster", "m"}, "conflicts with --management-cluster"},
		"an invalid name":                   {[]string{"One!", "-p", "docker"}, "One!"},
		"an invalid name of the management": {[]string{"one", "-p", "docker", "--management-cluster", "M_1"}, "M_1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := generate(t, tt.args...)
			var code *ui.CodeError
			if !errors.As(err, &code) || code.Code != ui.ExitUsage || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want a usage error with %q", err, tt.want)
			}
			if text != "" {
				t.Errorf("a spec was written all the same:\n%s", text)
			}
		})
	}
}

// The spec of the walkthrough in README.md works with the kubeconfig of an embedded plane.
func TestGeneratedWorkloadSpecIsAcceptedWithAKubeconfig(t *testing.T) {
	for args, want := range map[string]bool{"--workload": true, "--workload=false": false} {
		text, err := generate(t, "one", "-p", "docker", args)
		if err != nil {
			t.Fatal(err)
		}
		c := &change{kubeconfig: "plane.kubeconfig"}
		config, err := c.parse("create", []byte(text), "one.yaml")
		if accepted := err == nil && config.Cluster.IsManaged(); accepted != want {
			t.Errorf("%s: accepted with --kubeconfig: got %v, want %v (%v)", args, accepted, want, err)
		}
	}
}
