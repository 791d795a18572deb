// Command docs writes the reference pages of the command line, one per command.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/cli/ui"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docs DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// write replaces all pages, which also removes those of removed commands.
func write(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "drover*.md"))
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	root := cli.NewCommand(&ui.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	root.DisableAutoGenTag = true
	return doc.GenMarkdownTree(root, dir)
}
