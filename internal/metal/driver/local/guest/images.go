package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

const (
	// imagesMount is where a machine sees the host's image archives.
	imagesMount = "/usr/lib/drover/images"
	// imported has an empty file for each archive that containerd has imported. It is stored beside
	// the images, so that both are deleted together.
	imported = "drover-images"
	// ArchiveSuffix is the suffix of complete archives; other files are still being written.
	ArchiveSuffix = ".tar"
)

// ImportedFile returns the path, in the directory of a machine, of the file that marks an archive
// as imported.
func ImportedFile(dir, archive string) string {
	return filepath.Join(dir, "data", "containerd", imported, archive)
}

// importImages imports every archive of the host into containerd, now and later.
func (m *machine) importImages() {
	if m.spec.Images == "" {
		return
	}
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(imagesMount)
	}
	err = errors.Join(err, m.awaitContainerd())
	if err != nil {
		m.printf("images of the host are not imported: %v", err)
		return
	}
	for {
		m.importNew()
		select {
		case <-watcher.Events:
		case <-watcher.Errors: // Events may have been lost.
		}
	}
}

// importNew imports new archives. A failed archive is retried at the next event.
func (m *machine) importNew() {
	archives, _ := filepath.Glob(filepath.Join(imagesMount, "*"+ArchiveSuffix))
	for _, archive := range archives {
		mark := filepath.Join(DataDirs()["containerd"], imported, filepath.Base(archive))
		if _, err := os.Stat(mark); err == nil {
			continue
		}
		if err := m.importArchive(archive, mark); err != nil {
			m.printf("importing %s: %v", filepath.Base(archive), err)
		}
	}
}

// importArchive imports without unpacking, since most machines never run most of the images.
func (m *machine) importArchive(archive, mark string) error {
	err := m.processes.run(command{
		argv: []string{"ctr", "--namespace", "k8s.io", "images", "import", "--no-unpack", archive},
		env:  baseEnv(), dir: "/", out: os.Stdout,
	})
	if err != nil {
		return err
	}
	m.printf("imported %s", filepath.Base(archive))
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return fmt.Errorf("recording the import: %w", err)
	}
	return nil
}
