package spec_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/spec"
)

// contentCase is a change of a valid file and the resulting violations.
type contentCase struct {
	Name   string         `json:"name"`
	Base   string         `json:"base"`
	Change map[string]any `json:"change"`
	Want   []string       `json:"want"`
}

func TestCheckReportsEveryProblem(t *testing.T) {
	for _, test := range table[contentCase](t, "content") {
		t.Run(test.Name, func(t *testing.T) {
			_, problems := spec.Check(changed(t, base(t, test.Base), test.Change))
			if diff := cmp.Diff(test.Want, lines(problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			complete(t, problems)
		})
	}
}

func TestEveryRuleHasACase(t *testing.T) {
	fired := map[int]bool{}
	for _, test := range table[contentCase](t, "content") {
		c, err := spec.Read(changed(t, base(t, test.Base), test.Change))
		if err != nil {
			continue
		}
		spec.Default(c)
		for i, rule := range spec.ClusterRules {
			fired[i] = fired[i] || len(rule(c.Cluster)) > 0
		}
	}
	for i, rule := range spec.ClusterRules {
		if !fired[i] {
			t.Errorf("no case breaks %s", runtime.FuncForPC(reflect.ValueOf(rule).Pointer()).Name())
		}
	}
}

func TestNotes(t *testing.T) {
	mirror := map[string]any{"registryMirrorConfiguration": map[string]any{"endpoint": "a.example.com", "insecureSkipVerify": true}}
	for name, test := range map[string]struct {
		base   string
		change map[string]any
		want   []string
	}{
		"nothing": {"packet", map[string]any{}, nil},
		"one control plane elsewhere": {
			"packet",
			map[string]any{"controlPlaneConfiguration": map[string]any{"count": 1}},
			[]string{"spec.controlPlaneConfiguration.count: production clusters need 3 or 5 control plane machines, this one has 1 (use 3 or 5)"},
		},
		"one member of etcd elsewhere": {
			"packet",
			map[string]any{"externalEtcdConfiguration": map[string]any{"count": 1}},
			[]string{"spec.externalEtcdConfiguration.count: production clusters need 3 or 5 members of etcd, this one has 1 (use 3 or 5)"},
		},
		"one member of etcd here": {"docker", map[string]any{"externalEtcdConfiguration": map[string]any{"count": 1}}, nil},
		"one control plane here":  {"docker", map[string]any{}, nil},
		"no workers": {
			"docker",
			map[string]any{"workerNodeGroupConfigurations": nil},
			[]string{"spec.workerNodeGroupConfigurations: no worker groups: Pods run on control plane machines (add a worker group to run Pods on separate machines)"},
		},
		"a licence": {"docker", map[string]any{"licenseToken": "x"}, []string{"spec.licenseToken: a license is not required and has no effect (remove it)"}},
		"a mirror that anybody can be": {
			"docker", mirror,
			[]string{"spec.registryMirrorConfiguration.insecureSkipVerify: machines do not verify the certificate of the mirror (set caCertContent instead)"},
		},
	} {
		if diff := cmp.Diff(test.want, lines(spec.Notes(cluster(t, test.base, map[string]any{"spec": test.change})))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestManyViolationsAreBounded(t *testing.T) {
	many := make(spec.Violations, 1000)
	for i := range many {
		many[i] = spec.Violation{Path: "spec", Problem: "wrong", Remedy: "right"}
	}
	if text := many.Error(); len(text) > 4000 || !strings.HasSuffix(text, "and 900 more") {
		t.Errorf("a thousand violations are %d characters that end with %q", len(text), text[len(text)-20:])
	}
	if err := (spec.Violations{}).Err(); err != nil {
		t.Errorf("no violations are an error: %v", err)
	}
	if err := many[:1].Err(); err == nil || err.Error() != "spec: wrong (right)" {
		t.Errorf("one violation is %v", err)
	}
}

func TestValidSpecs(t *testing.T) {
	for _, name := range []string{"docker", "packet"} {
		c, problems := spec.Check(base(t, name))
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		if again := spec.Validate(c); len(again) > 0 {
			t.Errorf("%s: Check accepts it, Validate rejects it: %v", name, again)
		}
	}
}
