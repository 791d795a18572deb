package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Target is a set of programs of one module that are compiled together.
type Target struct {
	// Label is the name shown to users.
	Label string
	// Source is the directory of the module, Packages the main packages.
	Source   string
	Packages []string
	// Flags are those of go build, besides those that every build has.
	Flags []string
	// C reports whether the programs use cgo.
	C bool
	// Crowded reports whether the module has many packages that the programs do not use; the key
	// ignores those.
	Crowded bool
}

func (t Target) flags() []string {
	return append(slices.Clone(commonFlags), t.Flags...)
}

// command runs the go command in the target's module.
func (b Builder) command(ctx context.Context, t Target, args ...string) goCommand {
	b.Source = t.Source
	g := b.goCommand(ctx, args...)
	if t.C {
		g.cmd.Env = append(g.cmd.Env, "CGO_ENABLED=1") // the last value wins
	}
	return g
}

func (b Builder) targetUnit(t Target) unit {
	return unit{
		label: t.Label, flags: t.flags(), packages: t.Packages,
		command: func(ctx context.Context, args ...string) goCommand { return b.command(ctx, t, args...) },
	}
}

// FetchTarget downloads the modules that Compile needs.
func (b Builder) FetchTarget(ctx context.Context, t Target) error {
	_, err := b.targetUnit(t).list(ctx, b.Task)
	return err
}

// Compile leaves the programs in dir, named like their packages.
func (b Builder) Compile(ctx context.Context, t Target, dir string) error {
	return b.targetUnit(t).compile(ctx, b.Task, dir+"/")
}

// Key identifies everything that the programs of the targets depend on.
func (b Builder) Key(ctx context.Context, targets []Target) (string, error) {
	all := inputs{env: map[string]string{}, files: map[string]string{}}
	for _, t := range targets {
		in := inputs{release: Release{ModFile: defaultModFile}, files: map[string]string{}}
		out, err := b.command(ctx, t, append([]string{"env", "-json", "GOFLAGS"}, environment()...)...).run(nil)
		if err != nil {
			return "", fmt.Errorf("reading the go command's settings: %w", err)
		}
		if err := json.Unmarshal(out, &all.env); err != nil {
			return "", fmt.Errorf("reading the go command's settings: %w", err)
		}
		all.env["GOFLAGS"] = relevantFlags(all.env["GOFLAGS"])
		if err := b.readTarget(ctx, t, in); err != nil {
			return "", fmt.Errorf("reading the source of %s: %w", t.Label, err)
		}
		for name, content := range in.files {
			all.files[t.Source+"/"+name] = content
		}
		all.flags = slices.Concat(all.flags, []string{t.Label, fmt.Sprint(t.C)}, t.flags(), t.Packages)
	}
	return all.key(), nil
}

func (b Builder) readTarget(ctx context.Context, t Target, in inputs) error {
	if t.Crowded {
		return b.readPackages(ctx, t, in)
	}
	return in.readSources(t.Source)
}

// listed is what the go command reports about a package.
type listed struct {
	ImportPath, Dir     string
	GoFiles, EmbedFiles []string
	Module              *module
}

type module struct {
	Main          bool
	Path, Version string
	Replace       *module
}

// readPackages reads the packages that the programs use: files of their own module, versions of
// other modules.
func (b Builder) readPackages(ctx context.Context, t Target, in inputs) error {
	args := slices.Concat([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Module"}, t.flags(), t.Packages)
	out, err := b.command(ctx, t, args...).run(nil)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := in.readPackage(p); err != nil {
			return err
		}
	}
}

// readPackage skips the standard library, whose version is in the environment.
func (in inputs) readPackage(p listed) error {
	if p.Module == nil {
		return nil
	}
	if m := p.Module; !m.Main {
		if m.Replace != nil {
			m = m.Replace
		}
		in.files[p.Module.Path] = m.Path + " " + m.Version
		return nil
	}
	for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles) {
		data, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return err
		}
		in.files[p.ImportPath+"/"+file] = string(data)
	}
	return nil
}
