package tags

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeDeviceKeepsTheWireFormat(t *testing.T) {
	machine := Machine{Namespace: "farm", Cluster: "herd", Name: "herd-cp-1", Claim: "1234"}
	names := []string{"capp:cluster-id:herd", "capp:machine-uid:herd-cp-1", "capp:namespace:farm", "drover:claim:1234"}
	for name, tt := range map[string]struct {
		device Device
		want   []string
	}{
		"control plane": {
			Device{Machine: machine, Role: "master", Version: "v1.36.3"},
			append(slices.Clone(names), "kubernetes.io/role:master", "kubernetes.io/version:v1.36.3"),
		},
		"a machine that moves the endpoint": {
			Device{Machine: machine, Role: "master", Endpoint: true},
			append(slices.Clone(names), "kubernetes.io/role:master", "drover:endpoint:lease"),
		},
		"without a version": {Device{Machine: machine, Role: "node"}, append(slices.Clone(names), "kubernetes.io/role:node")},
		"the user's tags come first, without empty and repeated ones": {
			Device{Machine: machine, Role: "node", User: []string{"rack:7", "", "rack:7", "capp:namespace:farm"}},
			[]string{
				"rack:7", "capp:namespace:farm", "capp:cluster-id:herd", "capp:machine-uid:herd-cp-1",
				"drover:claim:1234", "kubernetes.io/role:node",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.device.Encode()); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeDeviceKeepsUserTags(t *testing.T) {
	user := make([]string, 1, 8)
	user[0] = "rack:7"
	Device{User: user}.Encode()
	if got := user[:2][1]; got != "" {
		t.Errorf("Encode wrote %q behind the user's tags", got)
	}
}

func TestQueriesCoverBothForms(t *testing.T) {
	want := []string{"capp:machine-uid:m", "cluster-api-provider-packet:machine-uid:m"}
	if diff := cmp.Diff(want, Machine{Name: "m"}.Queries()); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestOwnsDevice(t *testing.T) {
	m := Machine{Namespace: "n", Cluster: "c", Name: "m", Claim: "1"}
	for name, tt := range map[string]struct {
		tags []string
		want bool
	}{
		"names and claim":                      {append([]string{"x", "drover:claim:1"}, m.names(current)...), true},
		"no claim, as the former provider did": {m.names(current), true},
		"names in the form before 2023":        {m.names(former), true},
		"another machine's claim":              {append([]string{"drover:claim:2"}, m.names(current)...), false},
		"another namespace":                    {Machine{Namespace: "o", Cluster: "c", Name: "m"}.names(current), false},
		"names in two forms":                   {append(m.names(current)[:2:2], m.names(former)[2]), false},
		"no tags":                              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.Owns(tt.tags); got != tt.want {
				t.Errorf("Owns(%q) = %t, want %t", tt.tags, got, tt.want)
			}
		})
	}
}

func TestParseMachine(t *testing.T) {
	full := Machine{Namespace: "farm", Cluster: "herd", Name: "herd-cp-1"}
	for name, tt := range map[string]struct {
		tags []string
		want Machine
	}{
		"no tags of ours":           {[]string{"blue", "kubernetes.io/role:worker"}, Machine{}},
		"current form":              {append([]string{"blue"}, full.names(current)...), full},
		"form before 2023":          {full.names(former), full},
		"cluster without namespace": {[]string{"capp:cluster-id:herd"}, Machine{Cluster: "herd"}},
		"namespace without cluster": {[]string{"capp:namespace:farm"}, Machine{}},
		"a similar tag":             {[]string{"xcapp:cluster-id:herd", "capp:"}, Machine{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseMachine(tt.tags); got != tt.want {
				t.Errorf("ParseMachine(%q) = %+v, want %+v", tt.tags, got, tt.want)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	e := Endpoint{Namespace: "farm", Cluster: "herd"}
	if diff := cmp.Diff([]string{"cluster-api-provider-packet:cluster-id:herd", "capp:namespace:farm"}, e.Encode()); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	for name, tt := range map[string]struct {
		tags                         []string
		owns, names, hasNamespace    bool
		otherNamespace, otherCluster string
	}{
		"its own":                  {tags: e.Encode(), owns: true, names: true, hasNamespace: true},
		"of the former provider":   {tags: e.Encode()[:1], names: true},
		"untagged":                 {tags: []string{"blue"}},
		"same name elsewhere":      {tags: Endpoint{"barn", "herd"}.Encode(), names: true, hasNamespace: true, otherNamespace: "barn"},
		"neighbor in a namespace":  {tags: Endpoint{"farm", "flock"}.Encode(), hasNamespace: true, otherCluster: "flock"},
		"several clusters, own in": {tags: append(Endpoint{"farm", "flock"}.Encode(), e.Encode()...), owns: true, names: true, hasNamespace: true},
	} {
		t.Run(name, func(t *testing.T) {
			if e.Owns(tt.tags) != tt.owns || e.Names(tt.tags) != tt.names || HasNamespace(tt.tags) != tt.hasNamespace {
				t.Errorf("Owns %t, Names %t, HasNamespace %t", e.Owns(tt.tags), e.Names(tt.tags), HasNamespace(tt.tags))
			}
			if got := e.OtherNamespace(tt.tags); got != tt.otherNamespace {
				t.Errorf("OtherNamespace = %q, want %q", got, tt.otherNamespace)
			}
			if got := e.OtherCluster(tt.tags); got != tt.otherCluster {
				t.Errorf("OtherCluster = %q, want %q", got, tt.otherCluster)
			}
		})
	}
}

func TestMovedBy(t *testing.T) {
	own := Device{
		Machine: Machine{Namespace: "farm", Cluster: "herd", Name: "herd-cp-1", Claim: "1"}, Role: "master", Version: "v1.36.3", Endpoint: true,
	}
	with := func(change func(d *Device)) []string {
		d := own
		change(&d)
		return d.Encode()
	}
	for name, tt := range map[string]struct {
		tags []string
		want Endpoint
	}{
		"a control plane machine":       {own.Encode(), Endpoint{"farm", "herd"}},
		"with tags of the user":         {with(func(d *Device) { d.User = []string{"rack:7"} }), Endpoint{"farm", "herd"}},
		"without the tag":               {with(func(d *Device) { d.Endpoint = false }), Endpoint{}},
		"a worker":                      {with(func(d *Device) { d.Role = "node" }), Endpoint{}},
		"a worker that claims the role": {with(func(d *Device) { d.Role, d.User = "node", []string{"kubernetes.io/role:master"} }), Endpoint{}},
		"one that claims a namespace":   {with(func(d *Device) { d.User = []string{"capp:namespace:barn"} }), Endpoint{}},
		"one that claims a cluster":     {with(func(d *Device) { d.User = []string{"capp:cluster-id:flock"} }), Endpoint{}},
		"one that claims another cluster and hides its own": {
			with(func(d *Device) {
				d.User = []string{"capp:cluster-id:herd", "capp:namespace:farm", "capp:cluster-id:flock", "capp:namespace:barn"}
			}), Endpoint{},
		},
		"one that claims it in the former form":  {with(func(d *Device) { d.User = []string{"cluster-api-provider-packet:cluster-id:flock"} }), Endpoint{}},
		"one whose user repeats its own tags":    {with(func(d *Device) { d.User = []string{"capp:namespace:farm"} }), Endpoint{"farm", "herd"}},
		"a name that may have been shortened":    {with(func(d *Device) { d.Cluster = strings.Repeat("c", 90) }), Endpoint{}},
		"a device that belongs to no cluster":    {[]string{"drover:endpoint:lease", "kubernetes.io/role:master"}, Endpoint{}},
		"a cluster without a namespace, or name": {[]string{"drover:endpoint:lease", "kubernetes.io/role:master", "capp:cluster-id:herd", "capp:namespace:"}, Endpoint{}},
	} {
		got, ok := MovedBy(tt.tags)
		if got != tt.want || ok != (tt.want != Endpoint{}) {
			t.Errorf("%s: MovedBy(%q) = %+v, %t, want %+v", name, tt.tags, got, ok, tt.want)
		}
	}
}

func TestKubernetesVersion(t *testing.T) {
	if got := KubernetesVersion([]string{"a", "kubernetes.io/version:v1.35.4"}); got != "v1.35.4" {
		t.Errorf("version %q", got)
	}
	if got := KubernetesVersion([]string{"kubernetes.io/role:node"}); got != "" {
		t.Errorf("version %q of a device without the tag", got)
	}
}

func TestTooLong(t *testing.T) {
	fits := strings.Repeat("t", MaxLength)
	if tag, found := TooLong([]string{"a", fits}); found {
		t.Errorf("%q is too long", tag)
	}
	if tag, found := TooLong([]string{"a", fits + "t"}); !found || tag != fits+"t" {
		t.Errorf("TooLong = %q, %t", tag, found)
	}
}

func TestJoinKeepsLongValuesApart(t *testing.T) {
	long := strings.Repeat("n", MaxLength)
	a, b := join(claimKey, long+"a"), join(claimKey, long+"b")
	if len(a) != MaxLength || a == b || !strings.HasPrefix(a, claimKey+"nnn") {
		t.Errorf("%q and %q", a, b)
	}
	if got, want := join("k:", long), "k:"+strings.Repeat("n", 67)+"-feed930b89"; got != want {
		t.Errorf("join = %q, want %q: devices in use would not be found", got, want)
	}
}

// FuzzTags checks that tags are read back as they were written.
func FuzzTags(f *testing.F) {
	f.Add("farm", "herd", "herd-cp-1", "1234", "v1.36.3", "rack:7")
	f.Add(strings.Repeat("n", 90), strings.Repeat("c", 90), strings.Repeat("m", 90), "", "", "")
	f.Add("", "", "", "", "kubernetes.io/version:", "drover:claim:x")
	f.Fuzz(func(t *testing.T, namespace, cluster, machine, claim, version, user string) {
		m := Machine{Namespace: namespace, Cluster: cluster, Name: machine, Claim: claim}
		tags := Device{Machine: m, Role: "node", Version: version, User: []string{user}}.Encode()
		if !m.Owns(tags) {
			t.Errorf("%+v does not own %q", m, tags)
		}
		if !slices.Contains(tags, m.Queries()[0]) {
			t.Errorf("%q are not found by %q", tags, m.Queries()[0])
		}
		if tag, found := TooLong(tags); found && tag != user && tag != claimKey+claim {
			t.Errorf("tag %q is too long", tag)
		}
		if _, ours := cutPrefix(user); !ours {
			checkParsed(t, m, tags)
		}
		e := Endpoint{Namespace: namespace, Cluster: cluster}
		if !e.Owns(e.Encode()) || e.OtherCluster(e.Encode()) != "" || e.OtherNamespace(e.Encode()) != "" {
			t.Errorf("%+v does not own %q", e, e.Encode())
		}
		if _, found := TooLong(e.Encode()); found {
			t.Errorf("tags %q are too long", e.Encode())
		}
		if !strings.HasPrefix(user, versionKey) && len(version) <= 40 && KubernetesVersion(tags) != version {
			t.Errorf("version %q of %q, want %q", KubernetesVersion(tags), tags, version)
		}
	})
}

// checkParsed compares names that were not shortened.
func checkParsed(t *testing.T, m Machine, tags []string) {
	t.Helper()
	if m.Cluster == "" || max(len(m.Cluster), len(m.Name), len(m.Namespace)) > 40 {
		return
	}
	want := m
	want.Claim = ""
	if got := ParseMachine(tags); got != want {
		t.Errorf("ParseMachine(%q) = %+v, want %+v", tags, got, want)
	}
}
