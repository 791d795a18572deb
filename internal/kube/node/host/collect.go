package host

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// collector collects files and their dependencies recursively.
type collector struct {
	files     Files
	libraries []string // directories
	err       error
}

// program adds the program that a shell would run, and reports whether it exists.
func (c *collector) program(name string) bool {
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return c.path(path)
		}
	}
	return false
}

// path adds a file, the links that lead to it and its dependencies.
func (c *collector) path(path string) bool {
	for range 16 { // more links mean a loop
		path = top(path)
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		switch {
		case info.Mode().IsRegular():
			if c.files.regular[path] == nil {
				c.files.regular[path] = info
				c.needs(path)
			}
			return true
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return false
			}
			c.files.links[path] = target
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = target
		default:
			return false // a directory that matches a pattern
		}
	}
	return false
}

// needs adds the dependencies of a program or library.
func (c *collector) needs(path string) {
	f, err := os.Open(path)
	if err != nil {
		c.err = errors.Join(c.err, err)
		return
	}
	defer f.Close()
	magic := make([]byte, 4)
	if n, _ := f.ReadAt(magic, 0); n < len(magic) {
		return
	}
	switch {
	case bytes.Equal(magic, []byte(elf.ELFMAG)):
		c.elf(path, f)
	case bytes.HasPrefix(magic, []byte("#!")):
		line, _, _ := bufio.NewReader(f).ReadLine()
		if words := strings.Fields(strings.TrimPrefix(string(line), "#!")); len(words) > 0 {
			c.path(words[0])
		}
	}
}

func (c *collector) elf(path string, f *os.File) {
	file, err := elf.NewFile(f)
	if err != nil {
		c.err = errors.Join(c.err, fmt.Errorf("reading %q: %w", path, err))
		return
	}
	if interp := file.Section(".interp"); interp != nil {
		if data, err := interp.Data(); err == nil {
			c.path(string(bytes.TrimRight(data, "\x00")))
		}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return // static: no dynamic section
	}
	dirs := slices.Concat(runPath(file, filepath.Dir(path)), c.libraries)
	for _, library := range needed {
		if !c.findLibrary(library, dirs) {
			c.err = errors.Join(c.err, fmt.Errorf("library %q of %q is in none of %s", library, path, strings.Join(dirs, ", ")))
		}
	}
}

func (c *collector) findLibrary(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return c.path(filepath.Join(dir, name)) })
}

// runPath returns the library directories that the file specifies.
func runPath(file *elf.File, origin string) (dirs []string) {
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, _ := file.DynString(tag)
		for _, v := range values {
			for dir := range strings.SplitSeq(v, ":") {
				dirs = append(dirs, strings.ReplaceAll(dir, "$ORIGIN", origin))
			}
		}
	}
	return dirs
}

// libraryPath is the default path of the dynamic linker.
func libraryPath() []string {
	var dirs []string
	configs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, config := range configs {
		data, _ := os.ReadFile(config)
		for line := range strings.Lines(string(data)) {
			if dir := strings.TrimSpace(line); strings.HasPrefix(dir, "/") {
				dirs = append(dirs, dir)
			}
		}
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}
