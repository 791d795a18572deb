package guest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// startEnabled starts what is wanted at boot.
func (s *services) startEnabled() {
	wanted, _ := filepath.Glob("/etc/systemd/system/*.target.wants/*.service")
	for _, path := range wanted {
		if err := s.start(filepath.Base(path)); err != nil {
			s.say("%s: %v", filepath.Base(path), err)
		}
	}
}

// enable makes a unit start at boot.
func enable(name string) error {
	u, err := loadUnit("/", name)
	if err != nil {
		return err
	}
	targets := u.wantedBy
	if len(targets) == 0 {
		targets = []string{"multi-user.target"}
	}
	for _, target := range targets {
		dir := filepath.Join("/etc/systemd/system", target+".wants")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(u.path, filepath.Join(dir, u.name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func disable(name string) error {
	links, _ := filepath.Glob(filepath.Join("/etc/systemd/system", "*.wants", unitName(name)))
	for _, link := range links {
		if err := os.Remove(link); err != nil {
			return err
		}
	}
	return nil
}

func enabled(name string) bool {
	links, _ := filepath.Glob(filepath.Join("/etc/systemd/system", "*.wants", unitName(name)))
	return len(links) > 0
}
