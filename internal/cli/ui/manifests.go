package ui

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	stdio "io"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Manifests returns the YAML documents of a file, or of standard input for "-", and what messages
// call the file.
func (io *IO) Manifests(file string) (documents [][]byte, name string, err error) {
	name, in := "the standard input", io.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		name, in = fmt.Sprintf("%q", file), f
	}
	data, err := stdio.ReadAll(in)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", name, err)
	}
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		switch {
		case errors.Is(err, stdio.EOF):
			return documents, name, nil
		case err != nil:
			return nil, "", fmt.Errorf("reading %s: invalid YAML", name)
		case len(bytes.TrimSpace(document)) > 0:
			documents = append(documents, document)
		}
	}
}
