package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

const (
	// imagesMount is where archives of images are seen that the host has for
	// every machine.
	imagesMount = "/run/drover/images"
	// imported has an empty file for each archive that containerd has taken. It
	// lies beside what came of it, so that both go together.
	imported = "drover-images"
	// ArchiveSuffix ends the names of archives; all else is on its way.
	ArchiveSuffix = ".tar"
)

// ImportedFile is where the host sees, in the directory of a machine, that an
// archive was imported.
func ImportedFile(dir, archive string) string {
	return filepath.Join(dir, "data", "containerd", imported, archive)
}

// mountImages shows the host's archives, which a machine can't change.
func (s Spec) mountImages(root string) error {
	if s.Images == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(root, imagesMount), 0o755); err != nil {
		return err
	}
	if err := (mount{source: s.Images, target: imagesMount, flags: unix.MS_BIND}).do(root); err != nil {
		return err
	}
	return mount{target: imagesMount, flags: unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY}.do(root)
}

// importImages has containerd take every archive that the host has, now and
// later.
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
		m.say("images of the host are not imported: %v", err)
		return
	}
	for {
		m.importNew()
		select {
		case <-watcher.Events:
		case <-watcher.Errors: // Some events may have been lost.
		}
	}
}

// importNew imports what was not imported yet. An archive that can't be is
// tried again at the next chance.
func (m *machine) importNew() {
	archives, _ := filepath.Glob(filepath.Join(imagesMount, "*"+ArchiveSuffix))
	for _, archive := range archives {
		mark := filepath.Join(DataDirs()["containerd"], imported, filepath.Base(archive))
		if _, err := os.Stat(mark); err == nil {
			continue
		}
		if err := m.importArchive(archive, mark); err != nil {
			m.say("importing %s: %v", filepath.Base(archive), err)
		}
	}
}

// importArchive leaves unpacking to whoever first runs one of the images: most
// machines never do.
func (m *machine) importArchive(archive, mark string) error {
	err := m.processes.run(command{
		argv: []string{"ctr", "--namespace", "k8s.io", "images", "import", "--no-unpack", archive},
		env:  baseEnv(), dir: "/", out: os.Stdout,
	})
	if err != nil {
		return err
	}
	m.say("imported %s", filepath.Base(archive))
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return fmt.Errorf("remembering it: %w", err)
	}
	return nil
}
