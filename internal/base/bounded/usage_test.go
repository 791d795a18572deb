package bounded

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// trusted lists the files that may create HTTP clients or read kubeconfigs without this package,
// and why.
var trusted = map[string]string{
	"internal/base/bounded":                     "this package",
	"internal/workload/safeconfig":              "the loader of kubeconfigs from Secrets",
	"internal/test":                             "tests",
	"internal/controllers/capi/links.go":        "registers a protocol, and sends requests within limits",
	"internal/controllers/packet/vip":           "reads only the status of a response, and follows nothing",
	"internal/manager/health.go":                "asks the manager's own webhook server",
	"internal/metal/admin/admin.go":             "asks the metal service of this host",
	"internal/metal/service/service.go":         "asks the metal service of this host",
	"internal/metal/tls.go":                     "asks the metal service of this host",
	"internal/metal/client/transport.go":        "wraps a given client with limits",
	"internal/plane/probe.go":                   "asks components of the plane",
	"internal/plane/kubeconfig.go":              "connects to the plane's own API server",
	"internal/registry/client.go":               "asks the registry of the plane",
	"internal/registry/artifact/files.go":       "adds credentials to a transport with limits",
	"internal/operate/kubeconfig/file.go":       "reads files of the caller",
	"internal/operate/inspect/capi_clusters.go": "reads a file of the caller",
	"internal/operate/lifecycle":                "reads files of the caller",
	"internal/cli":                              "reads files of the caller",
}

// forbidden are functions, variables and types that bypass limits, by package.
var forbidden = map[string]map[string]bool{
	"http":      {"DefaultClient": true, "DefaultTransport": true, "Get": true, "Head": true, "Post": true, "PostForm": true},
	"clientcmd": {"Load": true, "LoadFromFile": true, "RESTConfigFromKubeConfig": true, "NewClientConfigFromBytes": true, "BuildConfigFromFlags": true},
}

// forbiddenLiterals are types of which other packages must not make values.
var forbiddenLiterals = map[string]map[string]bool{"http": {"Client": true, "Transport": true}, "rest": {"Config": true}}

func TestNobodyElseCreatesClientsForForeignPeers(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || isTrusted(name) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if what := bypass(n); what != "" {
					t.Errorf("%s uses %s: use package bounded or safeconfig, or add the file to trusted", files.Position(n.Pos()), what)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func isTrusted(name string) bool {
	for prefix := range trusted {
		if name == prefix || strings.HasPrefix(name, prefix+"/") {
			return true
		}
	}
	return false
}

// bypass returns the name of what a node uses, if that is forbidden.
func bypass(n ast.Node) string {
	names := forbidden
	if literal, ok := n.(*ast.CompositeLit); ok {
		n, names = literal.Type, forbiddenLiterals
	}
	selector, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if from, ok := selector.X.(*ast.Ident); ok && names[from.Name][selector.Sel.Name] {
		return from.Name + "." + selector.Sel.Name
	}
	return ""
}
