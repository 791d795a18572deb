package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

const (
	imagesDir = "images"
	// keepArchives is the number of archives of a program kept beside the latest: clusters of an
	// older Drover may get new machines, too.
	keepArchives = 3
	// partTime is the maximum age of an unfinished archive.
	partTime    = time.Hour
	importTime  = time.Minute
	importWatch = 50 * time.Millisecond
)

// Deliver preloads an archive of container images on all machines of a home. Running machines have
// it when Deliver returns; later machines import it during boot. The name identifies the content
// and begins with that of the program, as in manager-1a2b; an existing archive of that name is
// reused. No driver needs to run.
func Deliver(ctx context.Context, home, name string, write func(file string) error) error {
	dir := filepath.Join(home, imagesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the directory of images: %w", err)
	}
	file := filepath.Join(dir, name+guest.ArchiveSuffix)
	if err := place(file, write); err != nil {
		return fmt.Errorf("delivering images %q: %w", name, err)
	}
	if err := pruneArchives(dir, file); err != nil {
		return fmt.Errorf("removing old images: %w", err)
	}
	return awaitImport(ctx, home, filepath.Base(file))
}

// place creates the file unless it exists. Machines never see a partial file.
func place(file string, write func(file string) error) error {
	now := time.Now()
	err := os.Chtimes(file, now, now) // Mark it as used.
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // A no-op once it has been renamed.
	defer part.Close()
	if err := write(part.Name()); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(file))
}

// pruneArchives deletes all but the latest archives of a program. Machines keep the images that
// they have imported.
func pruneArchives(dir, newest string) error {
	parts, _ := filepath.Glob(filepath.Join(dir, ".part-*"))
	parts = slices.DeleteFunc(parts, func(file string) bool { return elapsed.Since(delivered(file), time.Now()) < partTime })
	archives, _ := filepath.Glob(filepath.Join(dir, "*"+guest.ArchiveSuffix))
	archives = slices.DeleteFunc(archives, func(file string) bool { return file == newest || programOf(file) != programOf(newest) })
	slices.SortFunc(archives, func(a, b string) int { return delivered(b).Compare(delivered(a)) })
	var errs []error
	for _, file := range append(parts, archives[min(keepArchives, len(archives)):]...) {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// programOf returns the name of an archive up to its last dash.
func programOf(file string) string {
	name := filepath.Base(file)
	return name[:max(strings.LastIndexByte(name, '-'), 0)]
}

func delivered(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// awaitImport waits until every running machine has imported the archive.
func awaitImport(ctx context.Context, home, archive string) error {
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	tick := time.NewTicker(importWatch)
	defer tick.Stop()
	for {
		missing, err := withoutArchive(home, archive)
		if err != nil || len(missing) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for machines to import %q: %s: %w; their consoles say why", archive, strings.Join(missing, ", "), ctx.Err())
		case <-tick.C:
		}
	}
}

// withoutArchive returns the running machines that lack the archive. A machine started by an older
// Drover without support for archives is skipped; it imports the archive at its next boot.
func withoutArchive(home, archive string) ([]string, error) {
	dirs, err := filepath.Glob(filepath.Join(home, machinesDir, "*"))
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, dir := range dirs {
		m := &machine{dir: dir}
		spec, err := guest.ReadSpec(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, runs := m.process(); runs && spec.Images != "" && !exists(guest.ImportedFile(dir, archive)) {
			missing = append(missing, spec.Hostname)
		}
	}
	return missing, nil
}
