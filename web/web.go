// Package web embeds the page that shows a fleet in a browser. The sources are in src, the only
// library in third_party, and the result, which is committed, in dist. "go generate" builds it with
// esbuild; no Node is needed.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"path"
)

//go:generate go tool -modfile=../hack/tools/go.mod esbuild src/main.tsx src/style.css src/index.html src/icon.svg --bundle --minify --target=es2022 --format=esm --legal-comments=none --loader:.html=copy --loader:.svg=copy --log-level=warning --log-override:unsupported-css-property=silent --outdir=dist --entry-names=[name]

//go:embed dist
var dist embed.FS

// Asset is a file of the page.
type Asset struct {
	Data []byte
	// Type is its media type, and Tag an HTTP entity tag of its content.
	Type, Tag string
}

// File returns a file of the page.
func File(name string) (Asset, bool) {
	data, err := fs.ReadFile(dist, path.Join("dist", path.Clean("/"+name)))
	if err != nil {
		return Asset{}, false
	}
	sum := sha256.Sum256(data)
	return Asset{Data: data, Type: mime.TypeByExtension(path.Ext(name)), Tag: `"` + hex.EncodeToString(sum[:8]) + `"`}, true
}
