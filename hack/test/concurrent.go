package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// concurrent reports whether a package, tests included, starts goroutines or synchronizes them.
// Only such packages can have data races that their own tests reveal. The race detector would make
// the others compile and run several times as long.
func (r *run) concurrent(pkg string) bool {
	return startsGoroutines(filepath.Join(r.root, short(pkg)))
}

// startsGoroutines reports whether a Go file in a directory is concurrent, or can't be read.
func startsGoroutines(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err != nil || slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		if err != nil {
			return true
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		return err != nil || synchronizes(parsed) || slices.ContainsFunc(parsed.Decls, spawns)
	})
}

// synchronizes reports whether a file imports a package that is only needed with goroutines.
func synchronizes(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		path, _ := strconv.Unquote(i.Path.Value) // the parser has checked it
		return path == "sync" || strings.HasPrefix(path, "sync/") || strings.HasPrefix(path, "golang.org/x/sync/")
	})
}

// spawns reports whether a declaration has a go statement or a parallel test.
func spawns(d ast.Decl) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Parallel" || n.Sel.Name == "RunParallel"
		}
		return !found
	})
	return found
}
