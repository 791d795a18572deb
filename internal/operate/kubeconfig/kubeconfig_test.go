package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

// kept returns a kubeconfig as Cluster API stores it.
func kept(name, server string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: %[1]s, cluster: {server: "%[2]s", certificate-authority-data: Y2E=}}]
users: [{name: %[1]s-admin, user: {client-certificate-data: Y3J0, client-key-data: a2V5}}]
contexts: [{name: %[1]s-admin@%[1]s, context: {cluster: %[1]s, user: %[1]s-admin}}]
current-context: %[1]s-admin@%[1]s
`, name, server)
}

func origin(namespace, name string) Origin {
	return Origin{Plane: "https://127.0.0.1:6443", Namespace: namespace, Cluster: name}
}

func parse(t *testing.T, o Origin, server, name string) *Kubeconfig {
	t.Helper()
	k, err := Parse(kept(o.Cluster, server), o, name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// servers maps the contexts of a file to their servers and users.
func servers(t *testing.T, path string) map[string]string {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"current": cfg.CurrentContext}
	for name, c := range cfg.Contexts {
		out[name] = cfg.Clusters[c.Cluster].Server + " as " + c.AuthInfo
	}
	return out
}

const foreign = `apiVersion: v1
kind: Config
clusters: [{name: work, cluster: {server: "https://work.example.com"}}, {name: herd, cluster: {server: "https://herd.example.com"}}]
users: [{name: work, user: {token: secret, exec: null}}]
contexts: [{name: work, context: {cluster: work, user: work, namespace: office}}]
current-context: work
preferences: {}
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEncodeReturnsOneCluster(t *testing.T) {
	data, err := parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "").Encode()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://10.0.0.1:6443" || string(cfg.KeyData) != "key" || string(cfg.CAData) != "ca" {
		t.Errorf("config %+v", cfg)
	}
	renamed, err := parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "mine").Encode()
	if err != nil || strings.Contains(string(renamed), "sheep-admin") || !strings.Contains(string(renamed), "current-context: mine") {
		t.Errorf("renamed (%v):\n%s", err, renamed)
	}
}

func TestMergeKeepsForeignEntries(t *testing.T) {
	path := write(t, foreign)
	for _, server := range []string{"https://10.0.0.1:6443", "https://10.0.0.2:6443"} { // The second is the same cluster, created again.
		if err := parse(t, origin("farm", "sheep"), server, "").Merge(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"current": "work", "work": "https://work.example.com as work", "sheep-admin@sheep": server + " as sheep-admin"}
		if diff := cmp.Diff(want, servers(t, path)); diff != "" {
			t.Error(diff)
		}
	}
	cfg, err := clientcmd.LoadFromFile(path)
	if err != nil || cfg.Contexts["work"].Namespace != "office" || cfg.AuthInfos["work"].Token != "secret" || cfg.Clusters["herd"] == nil {
		t.Errorf("foreign entries changed: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
		t.Errorf("the lock still exists: %v", err)
	}
}

func TestMergeNeverReplacesForeignEntries(t *testing.T) {
	for name, k := range map[string]*Kubeconfig{
		"a cluster of that name":                  parse(t, origin("farm", "herd"), "https://10.0.0.1:6443", ""),
		"a context of that name":                  parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "work"),
		"a cluster of another namespace":          parse(t, origin("city", "goats"), "https://10.0.0.1:6443", ""),
		"a cluster of that name of another plane": parse(t, Origin{Plane: "https://elsewhere", Namespace: "farm", Cluster: "goats"}, "https://10.0.0.1:6443", ""),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, foreign)
			if err := parse(t, origin("farm", "goats"), "https://10.0.0.9:6443", "").Merge(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var other *ForeignError
			if err := k.Merge(t.Context(), path); !errors.As(err, &other) || !strings.Contains(err.Error(), "--context") {
				t.Errorf("got error %v, want one that contains %q", err, "--context")
			}
			if after, err := os.ReadFile(path); err != nil || !cmp.Equal(before, after) {
				t.Errorf("the file changed (%v):\n%s", err, after)
			}
		})
	}
}

func TestMergeCreatesFilesAndFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "config")
	if err := parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "").Merge(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file is not private: %v (%v)", info.Mode(), err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := parse(t, origin("farm", "goats"), "https://10.0.0.2:6443", "").Merge(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced by a file (%v)", err)
	}
	if got := servers(t, path); len(got) != 3 || got["current"] != "sheep-admin@sheep" {
		t.Errorf("contexts %v", got)
	}
}

func TestConcurrentMergesAreAllKept(t *testing.T) {
	path := write(t, foreign)
	var wg sync.WaitGroup
	for i := range 8 {
		k := parse(t, origin("farm", fmt.Sprintf("c%d", i)), "https://10.0.0.1:6443", "")
		wg.Go(func() {
			if err := k.Merge(t.Context(), path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := servers(t, path); len(got) != 10 {
		t.Errorf("%d contexts, want 9: %v", len(got)-1, got)
	}
}

func TestInvalidKubeconfigsAreLeftUnchanged(t *testing.T) {
	k := parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "")
	path := write(t, "{garbage")
	if err := k.Merge(t.Context(), path); err == nil || !strings.Contains(err.Error(), "left unchanged") {
		t.Errorf("merging into garbage: %v", err)
	}
	var taken *TakenError
	if err := k.Write(path); !errors.As(err, &taken) || !strings.Contains(err.Error(), "choose another file") {
		t.Errorf("writing over garbage: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{garbage" {
		t.Errorf("the file changed to %q (%v)", data, err)
	}
	for name, data := range map[string]string{"garbage": "{garbage", "empty": "", "no context": strings.Replace(string(kept("sheep", "x")), "current-context: sheep", "current-context: goats", 1)} {
		if _, err := Parse([]byte(data), origin("farm", "sheep"), ""); err == nil {
			t.Errorf("%s is accepted as a kubeconfig", name)
		}
	}
}

func TestWriteReplacesOnlyTheSameCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sheep.kubeconfig")
	for _, server := range []string{"https://10.0.0.1:6443", "https://10.0.0.2:6443"} {
		if err := parse(t, origin("farm", "sheep"), server, "").Write(path); err != nil {
			t.Fatal(err)
		}
		if got := servers(t, path)["sheep-admin@sheep"]; got != server+" as sheep-admin" {
			t.Errorf("the file leads to %q", got)
		}
	}
	if err := parse(t, origin("farm", "goats"), "https://10.0.0.3:6443", "").Write(path); err == nil {
		t.Error("the kubeconfig of another cluster is replaced")
	}
	if err := parse(t, origin("farm", "sheep"), "https://10.0.0.3:6443", "").Write(write(t, foreign)); err == nil {
		t.Error("a foreign kubeconfig is replaced")
	}
}

func TestMergeWaitsForTheLock(t *testing.T) {
	path := write(t, foreign)
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockRetry)
	defer cancel()
	err := parse(t, origin("farm", "sheep"), "https://10.0.0.1:6443", "").Merge(ctx, path)
	if err == nil || !strings.Contains(err.Error(), "remove \""+path+".lock\"") {
		t.Errorf("got error %v, want one that contains %q", err, "remove \""+path+".lock\"")
	}
}
