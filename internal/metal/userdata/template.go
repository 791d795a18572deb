package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// template tells whether the text says that it is a Jinja template.
func template(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return templateHeader.Match(line)
}

var templateHeader = regexp.MustCompile(`^##\s*template:\s*jinja\s*$`)

// template renders the text and reads the result.
func (p *parser) template(text []byte, kind string, depth int) error {
	_, body, _ := bytes.Cut(text, []byte("\n"))
	rendered, err := render(string(body), p.variables)
	if err != nil {
		return fmt.Errorf("rendering userdata as a Jinja template: %w; it can use %s", err, known(p.variables))
	}
	return p.part([]byte(rendered), kind, depth+1)
}

// render is strict: a variable that is not there is an error, not a gap in a
// configuration file.
func render(text string, variables map[string]any) (rendered string, err error) {
	defer func() {
		// The library panics on some templates that are wrong.
		if r := recover(); r != nil {
			err = fmt.Errorf("the template is not valid: %v", r)
		}
	}()
	settings := config.New()
	settings.StrictUndefined = true
	settings.KeepTrailingNewline = true
	// Templates may not read files.
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
		err = errors.New("the result is too large")
	}
	return rendered, err
}

// known lists the variables for people.
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
