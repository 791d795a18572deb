package bounded

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// trusted lists the files and directories that may create clients or read kubeconfigs without this
// package, and why.
var trusted = map[string]string{
	"internal/base/bounded":                         "this package",
	"internal/test":                                 "tests",
	"internal/workload/safeconfig/safeconfig.go":    "the loader of kubeconfigs from Secrets",
	"internal/controllers/capi/links.go":            "registers a protocol, and sends requests within limits",
	"internal/controllers/capi/tunnel.go":           "registers a proxy, and opens connections within limits",
	"internal/controllers/etcd/cluster/dial.go":     "bounds the size and the time of every answer of etcd",
	"internal/controllers/gitops/fleet/download.go": "uses a transport with limits",
	"internal/controllers/packet/vip/probe.go":      "reads only the status of a response, and follows nothing",
	"internal/git/http.go":                          "uses a transport with limits",
	"internal/git/rest/rest.go":                     "uses a transport with limits",
	"internal/manager/health.go":                    "asks the manager's own webhook server",
	"internal/metal/tls.go":                         "asks the metal service of this host",
	"internal/metal/client/transport.go":            "wraps a given client with limits",
	"internal/metal/driver/local/guest/runtime.go":  "asks the container runtime of this machine",
	"internal/plane/probe.go":                       "asks components of the plane",
	"internal/plane/kubeconfig.go":                  "connects to the plane's own API server",
	"internal/plane/etcd.go":                        "connects to the plane's own etcd",
	"internal/registry/client.go":                   "asks the registry of the plane",
	"internal/registry/artifact/files.go":           "adds credentials to a transport with limits",
	"internal/registry/artifact/puller.go":          "uses a transport with limits",
	"internal/registry/artifact/signatures.go":      "reuses the connections of a puller",
	"internal/registry/bundle/transfer/registry.go": "uses a transport with limits",
	"internal/operate/kubeconfig/file.go":           "reads files of the caller",
	"internal/cli/etcd/location.go":                 "asks the registry of the plane",
	"internal/kube/endpoint/api.go":                 "asks the API server of its own machine",
	"internal/workload/etcd/forward.go":             "forwards connections to etcd, whose messages are bounded",
	"internal/workload/etcd/open.go":                "bounds the messages of etcd",
	"internal/model/backup/storage/registry.go":     "asks the registry that the caller names",
	"internal/model/backup/storage/s3.go":           "uses a transport with limits",
	"internal/cli/manager/manager.go":               "connects to the cluster that it runs in",
	"internal/cli/seal/signers.go":                  "reads a file of the caller",
	"cmd/cni/main.go":                               "connects to the cluster that it runs on",
}

// forbidden are functions, variables and types that bypass limits, by the path of their package. An
// asterisk stands for all of a package.
var forbidden = map[string][]string{
	"net/http": {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Client", "Transport"},

	"k8s.io/client-go/rest":                {"Config", "InClusterConfig"},
	"k8s.io/client-go/tools/clientcmd":     {"Load", "LoadFromFile", "RESTConfigFromKubeConfig", "NewClientConfigFromBytes", "BuildConfigFromFlags"},
	"k8s.io/client-go/tools/portforward":   {"*"},
	"k8s.io/client-go/tools/remotecommand": {"*"},
	"k8s.io/client-go/transport/spdy":      {"*"},
	"k8s.io/client-go/transport/websocket": {"*"},
	"github.com/gorilla/websocket":         {"*"},
	"golang.org/x/net/websocket":           {"Dial", "DialConfig", "NewClient"},
	"golang.org/x/net/proxy":               {"*"},
	"google.golang.org/grpc":               {"NewClient", "Dial", "DialContext"},
	"go.etcd.io/etcd/client/v3":            {"New", "NewFromURL", "NewFromURLs"},
	"oras.land/oras-go/v2/registry/remote": {"*"},

	"github.com/minio/minio-go/v7": {"New", "NewCore"},

	"github.com/google/go-containerregistry/pkg/crane": {"*"},
	"github.com/google/go-containerregistry/pkg/v1/remote": {
		"NewPuller", "NewPusher", "Get", "Head", "Image", "Index", "Layer", "List", "ListWithContext", "Catalog", "CatalogPage", "Referrers",
		"Write", "WriteIndex", "WriteLayer", "MultiWrite", "Put", "Push", "Delete", "Tag", "CheckPushPermission",
	},
}

func TestOnlyListedFilesCreateClients(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	unused := maps.Clone(trusted)
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			found := bypasses(file)
			if entry := trustedBy(name); entry != "" && len(found) > 0 {
				delete(unused, entry)
				return nil
			}
			for _, use := range found {
				t.Errorf("%s uses %s: use package bounded or safeconfig, or add the file to trusted", files.Position(use.at), use.what)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range unused {
		t.Errorf("%s needs no trust", name)
	}
}

// trustedBy returns the entry that trusts a file.
func trustedBy(name string) string {
	for entry := range trusted {
		if name == entry || strings.HasPrefix(name, entry+"/") {
			return entry
		}
	}
	return ""
}

// use is where a file uses something forbidden.
type use struct {
	at   token.Pos
	what string
}

// bypasses returns what a file uses that is forbidden. Pointers to forbidden types are allowed: to
// use a client that exists is not to create one.
func bypasses(file *ast.File) []use {
	var found []use
	imports := map[string]string{}
	for _, spec := range file.Imports {
		from, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case forbidden[from] == nil:
		case spec.Name == nil:
			imports[nameOf(from)] = from
		case spec.Name.Name == ".":
			found = append(found, use{spec.Pos(), "all names of " + from})
		default:
			imports[spec.Name.Name] = from
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if pointer, ok := n.(*ast.StarExpr); ok {
			_, toType := pointer.X.(*ast.SelectorExpr)
			return !toType
		}
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok && isForbidden(imports[from.Name], selector.Sel.Name) {
			found = append(found, use{selector.Pos(), imports[from.Name] + "." + selector.Sel.Name})
		}
		return true
	})
	return found
}

func isForbidden(from, name string) bool {
	return slices.Contains(forbidden[from], name) || slices.Contains(forbidden[from], "*")
}

// nameOf returns the name of a package, which is the end of its path unless that is a version.
func nameOf(from string) string {
	base := path.Base(from)
	if name, ok := map[string]string{"v3": "clientv3", "v7": "minio"}[base]; ok {
		return name
	}
	return base
}

func TestBypassesAreFound(t *testing.T) {
	for source, want := range map[string]int{
		`import "net/http"; var c http.Client`:                                                              1,
		`import "net/http"; var c = &http.Client{}`:                                                         1,
		`import "net/http"; var c = new(http.Client)`:                                                       1,
		`import "net/http"; type t struct { http.Transport }`:                                               1,
		`import web "net/http"; func f() { web.Get("") }`:                                                   1,
		`import . "net/http"; var c = Client{}`:                                                             1,
		`import "net/http"; func f(c *http.Client) { c.Get("") }`:                                           0,
		`import "net/http"; var r http.Request`:                                                             0,
		`import r "github.com/google/go-containerregistry/pkg/v1/remote"; func f() { r.Image(nil) }`:        1,
		`import "github.com/google/go-containerregistry/pkg/v1/remote"; var o = remote.WithUserAgent("")`:   0,
		`import "k8s.io/client-go/tools/portforward"; var d, _ = portforward.NewSPDYOverWebsocketDialer()`:  1,
		`import etcd "go.etcd.io/etcd/client/v3"; func f() { etcd.New(etcd.Config{}) }`:                     1,
		`import "github.com/minio/minio-go/v7"; var c, _ = minio.New("", nil)`:                              1,
		`import "example.com/http"; var c http.Client`:                                                      0,
		`import "k8s.io/client-go/rest"; func f() *rest.Config { return &rest.Config{} }`:                   1,
		`import "k8s.io/client-go/rest"; func f(c *rest.Config) *rest.Config { return rest.CopyConfig(c) }`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := bypasses(file); len(found) != want {
			t.Errorf("%s: found %v, want %d", source, found, want)
		}
	}
}
