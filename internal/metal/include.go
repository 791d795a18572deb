package metal

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

const (
	// maxIncludeDepth is how many fields an included path may have.
	maxIncludeDepth = 3
	// maxIncluded bounds the objects that one response includes; the others remain links.
	maxIncluded = 10000
)

// inclusion replaces links in a response with the objects they refer to, as the caller would get
// them.
type inclusion struct {
	*call
	left int
	// known holds the objects fetched so far, by their links.
	known map[string]map[string]any
}

// included returns a response body with the links that the query names in "include" replaced.
func (c *call) included(body any) (any, error) {
	paths := c.includedPaths()
	if len(paths) == 0 {
		return body, nil
	}
	tree, err := treeOf(body)
	if err != nil {
		return nil, err
	}
	in := &inclusion{call: c, left: maxIncluded, known: map[string]map[string]any{}}
	for _, path := range paths {
		if fields := strings.Split(path, "."); len(fields) <= maxIncludeDepth {
			in.into(rootsOf(tree), fields)
		}
	}
	return tree, nil
}

// includedPaths returns the paths that the query names. Clients encode lists in two ways.
func (c *call) includedPaths() []string {
	q := c.r.URL.Query()
	var paths []string
	for _, list := range append(q["include"], q["include[]"]...) {
		for path := range strings.SplitSeq(list, ",") {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	return paths
}

// includes reports whether the query includes a field.
func (c *call) includes(field string) bool { return slices.Contains(c.includedPaths(), field) }

// treeOf returns the JSON form of a body as maps, lists and values.
func treeOf(body any) (any, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&tree)
	return tree, err
}

// rootsOf returns the objects that paths start at: the body, and the elements of a page's list.
func rootsOf(tree any) []map[string]any {
	body, isObject := tree.(map[string]any)
	if !isObject {
		return nil
	}
	roots := []map[string]any{body}
	if _, isPage := body["meta"]; !isPage && len(body) != 1 {
		return roots
	}
	for _, value := range body {
		if list, isList := value.([]any); isList {
			roots = append(roots, objectsIn(list)...)
		}
	}
	return roots
}

func objectsIn(list []any) []map[string]any {
	var out []map[string]any
	for _, value := range list {
		if object, isObject := value.(map[string]any); isObject {
			out = append(out, object)
		}
	}
	return out
}

// into replaces the links at a path below several objects.
func (in *inclusion) into(objects []map[string]any, path []string) {
	var next []map[string]any
	for _, object := range objects {
		switch value := object[path[0]].(type) {
		case map[string]any:
			in.replace(value)
			next = append(next, value)
		case []any:
			for _, link := range objectsIn(value) {
				in.replace(link)
				next = append(next, link)
			}
		}
	}
	if len(path) > 1 {
		in.into(next, path[1:])
	}
}

// replace fills a link with the object that it refers to. Links to what the caller may not access
// remain links.
func (in *inclusion) replace(link map[string]any) {
	href, isLink := link["href"].(string)
	if !isLink || len(link) != 1 || in.left == 0 {
		return
	}
	in.left--
	object, known := in.known[href]
	if !known {
		object = in.object(href)
		in.known[href] = object
	}
	maps.Copy(link, object)
}

// object returns what a link refers to, or nil.
func (in *inclusion) object(href string) map[string]any {
	body, err := in.fetch(strings.TrimPrefix(href, in.base))
	if err != nil {
		return nil
	}
	tree, err := treeOf(body)
	if err != nil {
		return nil
	}
	object, _ := tree.(map[string]any)
	return object
}

// lookup is a GET request that the service sends to itself with the rights of a caller.
type lookup struct {
	who  identity
	base string
	out  *reply
	err  error
}

type lookupKey struct{}

// lookupOf returns the lookup that a request belongs to, if any.
func lookupOf(ctx context.Context) *lookup {
	l, _ := ctx.Value(lookupKey{}).(*lookup)
	return l
}

// fetch returns the body of the response to GET.
func (c *call) fetch(path string) (any, error) {
	if isOwn(path) {
		return nil, errNotFound // Extensions stream.
	}
	l := &lookup{who: c.who, base: c.base, err: errNotFound}
	r, err := http.NewRequestWithContext(context.WithValue(c.r.Context(), lookupKey{}, l), http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	c.routes.ServeHTTP(discard{}, r)
	if l.err != nil {
		return nil, l.err
	}
	return l.out.body, nil
}

// discard is the response of a lookup, which returns its result to the caller.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
