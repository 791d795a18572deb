package guest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// defaultPath is the search path of all processes that the first process starts.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment returns the environment of processes in a machine.
func Environment() []string { return baseEnv() }

func baseEnv() []string {
	return []string{"PATH=" + defaultPath, "HOME=/root", "LANG=C.UTF-8", "TERM=linux", "USER=root", "SHELL=/bin/bash"}
}

// lookPath finds a program in the search path of the child, not in that of this process.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := defaultPath
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, "PATH="); ok {
			search = v
		}
	}
	for dir := range strings.SplitSeq(search, ":") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &fs.PathError{Op: "finding", Path: name, Err: fs.ErrNotExist}
}

func itoa(n int) string { return strconv.Itoa(n) }
