package metal

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// maxBackup bounds one backup, and maxBackups those of a cluster, so that a token of a project
// can't fill the disk of the host with one request or with many.
const (
	maxBackup  = 1 << 30
	maxBackups = 1000
)

// Backups returns the backups of a management cluster, whose machines are in a project. They are
// encrypted, and the service has no key that opens them. The API stores, lists and deletes them,
// but doesn't serve them: whoever recovers a cluster reads them on this host.
func (h Home) Backups(project, cluster string) storage.Directory {
	return storage.Directory{Path: h.path("backups", project, cluster), Suffix: ".backup"}
}

// BackupList is a response.
type BackupList struct {
	Backups []storage.Entry `json:"backups"`
}

// backups returns the directory that the path names.
func (c *call) backups() (storage.Directory, error) {
	p, err := c.project()
	if err != nil {
		return storage.Directory{}, err
	}
	cluster := c.r.PathValue("cluster")
	if len(validation.IsDNS1123Subdomain(cluster)) > 0 {
		return storage.Directory{}, request.Unprocessable(fmt.Sprintf("%q is not the name of a cluster", cluster))
	}
	return c.home.Backups(p.ID, cluster), nil
}

// backup returns the directory and the name that the path names.
func (c *call) backup() (storage.Directory, string, error) {
	dir, err := c.backups()
	name := c.r.PathValue("name")
	if err == nil && !storage.IsName(name) {
		err = request.Unprocessable(fmt.Sprintf("%q is not the name of a backup, such as %s", name, storage.NameFormat))
	}
	return dir, name, err
}

// listBackups lists the backups of a cluster. It is an extension of the API.
func listBackups(c *call) (*reply, error) {
	dir, err := c.backups()
	if err != nil {
		return nil, err
	}
	all, err := dir.List(c.r.Context())
	if err != nil {
		return nil, err
	}
	return ok(BackupList{Backups: append([]storage.Entry{}, storage.Newest(all)...)})
}

// putBackup stores the body as a backup, whole or not at all. A backup is never replaced. It is an
// extension of the API.
func putBackup(c *call) (*reply, error) {
	dir, name, err := c.backup()
	if err != nil {
		return nil, err
	}
	all, err := dir.List(c.r.Context())
	if err != nil {
		return nil, err
	}
	if len(all) >= maxBackups {
		return nil, request.Unprocessable(fmt.Sprintf("The cluster has %d backups already", len(all)))
	}
	entry, err := dir.Put(c.r.Context(), name, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(c.r.Body, maxBackup+1))
		if err == nil && (n > maxBackup || c.r.ContentLength >= 0 && n != c.r.ContentLength) {
			err = request.Unprocessable("The backup is too large or incomplete")
		}
		return err
	})
	switch {
	case errors.Is(err, storage.ErrExists):
		return nil, request.Refuse(http.StatusConflict, "A backup of this time exists")
	case err != nil:
		return nil, err
	}
	c.log.Info("backup stored", "project", c.r.PathValue("project"), "cluster", c.r.PathValue("cluster"), "name", name, "size", entry.Size)
	return created(entry)
}

// deleteBackup deletes a backup. It is an extension of the API.
func deleteBackup(c *call) (*reply, error) {
	dir, name, err := c.backup()
	if err != nil {
		return nil, err
	}
	if err := dir.Delete(c.r.Context(), name); err != nil {
		return nil, err
	}
	c.log.Info("backup deleted", "project", c.r.PathValue("project"), "cluster", c.r.PathValue("cluster"), "name", name)
	return noContent()
}
