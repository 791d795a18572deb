package document_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/drover-dev/drover/internal/model/document"
)

// A list of a hundred thousand items takes seconds at most, not hours: no step compares all items
// with each other.
func TestApplyChangesLongLists(t *testing.T) {
	var file bytes.Buffer
	file.WriteString("kind: A\nmetadata: {name: a}\nlist:\n")
	for i := range 100_000 {
		fmt.Fprintf(&file, "- %d\n", i)
	}
	objects, err := document.Objects(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	list, _ := objects[0]["list"].([]any)
	objects[0]["list"] = append(list[1:], "last")
	got, err := document.Apply(file.Bytes(), objects, document.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := append(bytes.Replace(file.Bytes(), []byte("- 0\n"), nil, 1), "- last\n"...)
	if !bytes.Equal(want, got) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}
