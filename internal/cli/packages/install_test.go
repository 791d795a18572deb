package packages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/cli/ui"
)

func TestConfigOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		sets []string
		want string
		err  string
	}{
		{"nothing", nil, "", ""},
		{"text", []string{"title=Hello, world"}, "title: Hello, world\n", ""},
		{"text with an equals sign", []string{"title=a=b"}, "title: a=b\n", ""},
		{"number, bool and list", []string{"port=80", "loud=true", "names=[a, b]"}, "loud: true\nnames:\n- a\n- b\nport: 80\n", ""},
		{"quoted number", []string{`port="80"`}, "port: \"80\"\n", ""},
		{"empty value", []string{"title="}, "title: \"\"\n", ""},
		{"invalid YAML is text", []string{"title=[a"}, "title: '[a'\n", ""},
		{"nested keys", []string{"service.port=80", "service.type=LoadBalancer"}, "service:\n  port: 80\n  type: LoadBalancer\n", ""},
		{"the last one wins", []string{"title=a", "title=b"}, "title: b\n", ""},
		{"no value", []string{"title"}, "", "please specify title as key=value"},
		{"no key", []string{"=a"}, "", "please specify =a as key=value"},
		{"key below a value", []string{"a=1", "a.b=2"}, "", `--set a.b: another --set assigns "a" a value that is not a map`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := configOf(tc.sets)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const header = "apiVersion: packages.eks.amazonaws.com/v1alpha1\n"
	for _, tc := range []struct {
		name, text string
		want       []string
		err        string
	}{
		{"package", header + "kind: Package\nmetadata: {name: a, namespace: eksa-packages-dev}\nstatus: {state: installed}\n", []string{"Package eksa-packages-dev/a"}, ""},
		{"bundle in the default namespace", header + "kind: PackageBundle\nmetadata: {name: v1-36-1}\n", []string{"PackageBundle eksa-packages/v1-36-1"}, ""},
		{
			"several documents", header + "kind: PackageBundleController\nmetadata: {name: dev}\n---\n---\n# nothing\n---\n" + header +
				"kind: Package\nmetadata: {name: a, namespace: x}\n", []string{"PackageBundleController eksa-packages/dev", "Package x/a"}, "",
		},
		{"nothing", "\n---\n", nil, "no packages found in the standard input"},
		{"invalid YAML", "a: b: c\n", nil, "parsing the standard input: invalid YAML"},
		{"another API group", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", nil, "contains a Pod of v1, which is not a kind of packages; apply it with kubectl"},
		{"no name", header + "kind: PackageBundle\n", nil, "a PackageBundle in the standard input has no name"},
		{"package without a namespace", header + "kind: Package\nmetadata: {name: a}\n", nil, `package "a" in the standard input has no namespace; use eksa-packages-<cluster>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, err := read(&ui.IO{In: strings.NewReader(tc.text)}, "-")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
				if _, ok := o.Object["status"]; ok {
					t.Errorf("%s has a status", o.GetName())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}
