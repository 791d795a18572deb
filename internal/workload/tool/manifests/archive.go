package manifests

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Limits of an archive. A package is text that must fit into a Secret.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20
)

// read returns the objects in a directory of an archive, in the order in which they are written.
func read(archive []byte, dir string) ([]map[string]any, error) {
	files, err := unpack(archive)
	if err != nil {
		return nil, err
	}
	dir, err = packageDir(files, dir)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	if _, ok := kustomization(files, dir); ok {
		found, err = kustomize(files, dir)
	} else {
		found, err = parseAll(files, dir)
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("archive contains no manifests")
	}
	objects.Sort(found)
	out := make([]map[string]any, 0, len(found))
	for _, u := range found {
		out = append(out, u.Object)
	}
	return out, nil
}

// unpack returns the files of a compressed tar by clean path. It rejects links, whose targets are
// ambiguous.
func unpack(archive []byte) (map[string][]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, errors.New("not a gzip archive")
	}
	files, left := map[string][]byte{}, int64(maxBytes)
	for reader := tar.NewReader(zipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("corrupt archive: %w", err)
		}
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeDir, header.Typeflag == tar.TypeXGlobalHeader:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is not a regular file", header.Name)
		case path.IsAbs(name), name == "..", strings.HasPrefix(name, "../"):
			return nil, fmt.Errorf("%q points outside the archive", header.Name)
		case len(files) >= maxFiles:
			return nil, fmt.Errorf("archive has more than %d files", maxFiles)
		}
		content, err := io.ReadAll(io.LimitReader(reader, left+1))
		if err != nil {
			return nil, fmt.Errorf("corrupt archive: %w", err)
		}
		if left -= int64(len(content)); left < 0 {
			return nil, fmt.Errorf("archive exceeds %d bytes", maxBytes)
		}
		files[name] = content
	}
}

// packageDir returns the path of dir in an archive. It skips the single top-level directory that
// archives of repositories have.
func packageDir(files map[string][]byte, dir string) (string, error) {
	dir = path.Clean("/" + dir)[1:]
	only := onlyDirectory(files)
	switch {
	case has(files, dir) && (dir != "" || only == ""):
		return dir, nil
	case only != "" && has(files, path.Join(only, dir)):
		return path.Join(only, dir), nil
	default:
		return "", fmt.Errorf("archive has no directory %q", dir)
	}
}

func has(files map[string][]byte, dir string) bool {
	for name := range files {
		if within(name, dir) {
			return true
		}
	}
	return dir == ""
}

func within(name, dir string) bool { return dir == "" || strings.HasPrefix(name, dir+"/") }

// onlyDirectory returns the top-level directory that contains all files, or an empty string.
func onlyDirectory(files map[string][]byte) string {
	only := ""
	for name := range files {
		first, _, nested := strings.Cut(name, "/")
		if !nested || only != "" && only != first {
			return ""
		}
		only = first
	}
	return only
}

// parseAll parses the manifests below a directory, sorted by path.
func parseAll(files map[string][]byte, dir string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !within(name, dir) || !isManifest(strings.TrimPrefix(name, dir)) {
			continue
		}
		found, err := parse(files[name])
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", name, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// isManifest reports whether a file is a manifest: it has the right extension and is not hidden.
func isManifest(name string) bool {
	if strings.Contains(name, "/.") || strings.HasPrefix(name, ".") {
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// parse parses the documents of a file. Errors never quote it.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errors.New("invalid YAML")
		}
		found, err := parseDocument(document)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	data, err := safeyaml.ToJSON(document)
	if errors.Is(err, safeyaml.ErrLimits) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("invalid YAML")
	}
	if string(data) == "null" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil || u.GetAPIVersion() == "" {
		return nil, errors.New("document has no apiVersion and kind")
	}
	if !u.IsList() {
		return named(u)
	}
	var out []*unstructured.Unstructured
	err = u.EachListItem(func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("item of %s is not an object", u.GetKind())
		}
		found, err := named(one)
		out = append(out, found...)
		return err
	})
	return out, err
}

func named(u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if u.GetName() == "" {
		return nil, fmt.Errorf("%s has no name", u.GetKind())
	}
	return []*unstructured.Unstructured{u}, nil
}
