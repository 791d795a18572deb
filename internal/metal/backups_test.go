package metal

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

func TestBackupsAreStoredAndNotServed(t *testing.T) {
	w := newHost(t, 1)
	path := "/drover/v1/projects/" + w.project + "/backups/mgmt"
	first, second := path+"/20260501T120000Z", path+"/20260501T130000Z"
	for _, name := range []string{first, second} {
		if got := w.call(w.token, "PUT", name, "an archive", nil); got != http.StatusCreated {
			t.Fatalf("storing %s: %d", name, got)
		}
	}
	var list BackupList
	if got := w.call(w.token, "GET", path, "", &list); got != http.StatusOK || len(list.Backups) != 2 || list.Backups[0].Name != "20260501T130000Z" {
		t.Errorf("listing: %d %+v", got, list)
	}
	for name, tt := range map[string]struct {
		token, method, path, body string
		want                      int
	}{
		"replacing one":           {w.token, "PUT", first, "another", http.StatusConflict},
		"reading one":             {w.token, "GET", first, "", http.StatusNotFound},
		"a strange name":          {w.token, "PUT", path + "/latest", "x", http.StatusUnprocessableEntity},
		"a name with a directory": {w.token, "PUT", path + "/..%2F20260501T120000Z", "x", http.StatusUnprocessableEntity},
		"a strange cluster":       {w.token, "PUT", "/drover/v1/projects/" + w.project + "/backups/..%2F../20260501T120000Z", "x", http.StatusUnprocessableEntity},
		"another project":         {w.token, "PUT", "/drover/v1/projects/other/backups/mgmt/20260501T120000Z", "x", http.StatusForbidden},
		"no token":                {"", "GET", path, "", http.StatusUnauthorized},
	} {
		if got := w.call(tt.token, tt.method, tt.path, tt.body, nil); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
	dir := w.home.Backups(w.project, "mgmt")
	content, err := os.ReadFile(dir.Path + "/20260501T120000Z.backup")
	if err != nil || !strings.Contains(string(content), "an archive") {
		t.Errorf("stored %q: %v", content, err)
	}
	if got := w.call(w.token, "DELETE", first, "", nil); got != http.StatusNoContent {
		t.Errorf("deleting: %d", got)
	}
	if all, err := dir.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("left %+v: %v", all, err)
	}
}

func TestClientsStoreBackups(t *testing.T) {
	w := newHost(t, 1)
	c, err := client.New(client.Options{URL: w.http.URL + versionPrefix, Token: w.token})
	if err != nil {
		t.Fatal(err)
	}
	kept := client.Backups{Client: c, Project: w.project, Cluster: "mgmt"}
	write := func(out io.Writer) error {
		_, err := io.WriteString(out, "an archive")
		return err
	}
	for _, name := range []string{"20260501T120000Z", "20260501T130000Z"} {
		if e, err := kept.Put(t.Context(), name, write); err != nil || e.Size != int64(len("an archive")) {
			t.Fatalf("%+v: %v", e, err)
		}
	}
	if _, err := kept.Put(t.Context(), "20260501T120000Z", write); !errors.Is(err, storage.ErrExists) {
		t.Errorf("the same time again: %v", err)
	}
	deleted, err := storage.Prune(t.Context(), kept, 1)
	if err != nil || len(deleted) != 1 || deleted[0].Name != "20260501T120000Z" {
		t.Errorf("deleted %+v: %v", deleted, err)
	}
	if all, err := kept.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "20260501T130000Z" {
		t.Errorf("left %+v: %v", all, err)
	}
	if _, err := kept.Get(t.Context(), "20260501T130000Z"); err == nil {
		t.Error("a token for machines reads a backup")
	}
}
