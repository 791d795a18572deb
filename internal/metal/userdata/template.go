package userdata

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	gonja "github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// isTemplate reports whether the first line declares a Jinja template.
func isTemplate(text []byte) bool { return templateHeader.Match(firstLine(text)) }

var templateHeader = regexp.MustCompile(`^##\s*template:\s*jinja\s*$`)

// template renders the text and reads the result.
func (p *parser) template(text []byte, mimeType string, depth int) error {
	_, body, _ := bytes.Cut(text, []byte("\n"))
	rendered, err := render(string(body), p.variables)
	if err != nil {
		return fmt.Errorf("rendering userdata as a Jinja template: %w; available variables: %s", err, known(p.variables))
	}
	return p.part([]byte(rendered), mimeType, depth+1)
}

// render is strict: an undefined variable is an error, not a gap in a configuration file.
func render(text string, variables map[string]any) (rendered string, err error) {
	defer func() {
		// The library panics on some invalid templates.
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid template: %v", r)
		}
	}()
	settings := gonja.New()
	settings.StrictUndefined = true
	settings.KeepTrailingNewline = true
	// This loader keeps templates from reading files.
	loader, err := loaders.NewMemoryLoader(map[string]string{"/userdata": text})
	if err != nil {
		return "", err
	}
	t, err := exec.NewTemplate("/userdata", settings, loader, &exec.Environment{
		Context: builtins.GlobalFunctions, Filters: builtins.Filters, Tests: builtins.Tests,
		ControlStructures: builtins.ControlStructures, Methods: builtins.Methods,
	})
	if err != nil {
		return "", err
	}
	rendered, err = t.ExecuteToString(exec.NewContext(variables))
	if err == nil && len(rendered) > maxSize {
		err = fmt.Errorf("the result is larger than %d MiB", maxSize>>20)
	}
	return rendered, err
}

// known lists the variables for an error message.
func known(variables map[string]any) string {
	var names []string
	for _, top := range slices.Sorted(maps.Keys(variables)) {
		below, ok := variables[top].(map[string]any)
		if !ok {
			names = append(names, top)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(below)) {
			names = append(names, top+"."+name)
		}
	}
	return strings.Join(names, ", ")
}
