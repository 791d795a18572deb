package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Target is a set of programs of one module that are compiled together. It is
// for what machines need besides Kubernetes.
type Target struct {
	// Label names the target to people.
	Label string
	// Source is the directory of the module, Packages the main packages.
	Source   string
	Packages []string
	// Flags are those of go build, besides those that every build has.
	Flags []string
	// C is whether the programs have parts in C.
	C bool
	// Crowded is whether the module has much that the programs are not made
	// of. Their key then leaves that out.
	Crowded bool
}

func (t Target) flags() []string {
	return append([]string{"-trimpath", "-buildvcs=false"}, t.Flags...)
}

// command runs the go command in the target's module.
func (b Builder) command(ctx context.Context, t Target, args ...string) goCommand {
	b.Source = t.Source
	g := b.goCommand(ctx, args...)
	if t.C {
		g.cmd.Env = append(g.cmd.Env, "CGO_ENABLED=1") // The last one counts.
	}
	return g
}

// Compile leaves the programs in dir, named like their packages.
func (b Builder) Compile(ctx context.Context, t Target, dir string) error {
	p := newProgress(b.Progress, b.Terminal, t.Label)
	defer p.end()
	p.show("reading the module graph")
	list := append(append([]string{"list", "-deps"}, t.flags()...), t.Packages...)
	out, err := b.command(ctx, t, list...).run(p, func(line string) bool {
		_, download := cutDownload(line)
		return download
	})
	if err != nil {
		return fmt.Errorf("listing the packages of %s: %w", t.Label, err)
	}
	packages, compiled := maps.Collect(lineSet(out)), 0
	args := slices.Concat([]string{"build"}, t.flags(), []string{"-v", "-o", dir + "/"}, t.Packages)
	p.show("compiling and linking")
	_, err = b.command(ctx, t, args...).run(p, func(line string) bool {
		if !packages[line] {
			return false
		}
		compiled++
		p.show(fmt.Sprintf("compiling, %d of %d packages", compiled, len(packages)))
		return true
	})
	if err != nil {
		return fmt.Errorf("compiling %s: %w", t.Label, err)
	}
	return nil
}

// Key identifies everything that the programs of the targets depend on.
func (b Builder) Key(ctx context.Context, targets []Target) (string, error) {
	all := inputs{env: map[string]string{}, files: map[string]string{}}
	for _, t := range targets {
		in := inputs{release: Release{ModFile: defaultModFile}, files: map[string]string{}}
		out, err := b.command(ctx, t, append([]string{"env", "-json", "GOFLAGS"}, environment()...)...).run(nil, nil)
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

// listed is what the go command tells about a package.
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

// readPackages reads the packages that the programs are made of: files of
// their own module, versions of others.
func (b Builder) readPackages(ctx context.Context, t Target, in inputs) error {
	args := slices.Concat([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Module"}, t.flags(), t.Packages)
	out, err := b.command(ctx, t, args...).run(nil, nil)
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

// readPackage has nothing to read of the standard library, whose version is in
// the environment.
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
