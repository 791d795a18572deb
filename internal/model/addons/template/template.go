// Package template renders the templates of add-ons and merges values.
//
// Templates come from users, so each has a budget of steps, time and size: one that loops or grows
// without end fails, and the manager keeps running. There are no functions that read the
// environment or the network. The package knows nothing of Kubernetes; Data is what a template may
// refer to. Start with Parse, Render and Merge.
package template

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/drover-dev/drover/internal/base/text"
)

// Data is what templates refer to. All of it is plain JSON: maps, slices, strings and numbers.
type Data struct {
	Cluster map[string]any
	// ControlPlane and InfraCluster are nil if the cluster has none or no template refers to them.
	ControlPlane map[string]any
	InfraCluster map[string]any
	// Variables are the variables of the cluster's topology, by name.
	Variables map[string]any
}

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	text   string
	parsed *template.Template
	uses   Uses
	calls  map[string]bool
	// functions are those that are called.
	functions template.FuncMap
}

// Parse parses a template. Errors contain the name, which is that of its field.
func Parse(name, source string) (*Template, error) {
	all := functions()
	all[tick] = func() string { return "" }
	t, err := template.New(name).Funcs(all).Parse(source)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	out := &Template{text: source, calls: map[string]bool{}, functions: template.FuncMap{}}
	for _, part := range t.Templates() {
		if part.Tree != nil && part.Root != nil {
			walker{uses: &out.uses, calls: out.calls, root: part.Name() == name}.list(part.Root)
			countSteps(part.Root)
		}
	}
	for called := range out.calls {
		if f, ok := all[called]; ok {
			out.functions[called] = f
		}
	}
	out.parsed, err = withCalledFunctions(t, out.functions)
	return out, err
}

// withCalledFunctions returns a template that has only the functions that it calls, because it is
// cloned for each rendering.
func withCalledFunctions(t *template.Template, called template.FuncMap) (*template.Template, error) {
	out := template.New(t.Name()).Funcs(called)
	for _, part := range t.Templates() {
		if _, err := out.AddParseTree(part.Name(), part.Tree); err != nil {
			return nil, fmt.Errorf("preparing template %q: %w", t.Name(), err)
		}
	}
	return out, nil
}

// Uses returns what the template refers to.
func (t *Template) Uses() Uses { return t.uses }

// Volatile reports whether the template calls functions with random or time-dependent results.
func (t *Template) Volatile() bool {
	for name := range t.calls {
		if _, ok := standIns[name]; ok {
			return true
		}
	}
	return false
}

// Render executes the template.
func (t *Template) Render(d Data) (string, error) { return t.execute(d, nil) }

// StableDigest returns a digest of the output without random and time-dependent parts. It changes
// only if the template or the data change.
func (t *Template) StableDigest(d Data) string {
	output, err := t.execute(d, standIns)
	if err != nil {
		// Stand-ins do not support every operation on certificates. Fall back to the inputs.
		data, jsonErr := json.Marshal(d)
		output = t.text + "\x00" + string(data) + fmt.Sprint(jsonErr)
	}
	sum := sha256.Sum256([]byte(output))
	return hex.EncodeToString(sum[:16])
}

func (t *Template) execute(d Data, instead template.FuncMap) (string, error) {
	b := newBudget()
	run, err := t.parsed.Clone()
	if err != nil {
		return "", fmt.Errorf("preparing template %q: %w", t.parsed.Name(), err)
	}
	run.Funcs(b.guard(t.functions, instead))
	values := d.values()
	if t.mutates() {
		values = clone(values) // the data is shared
	}
	var out bytes.Buffer
	if err := run.Execute(&limited{to: &out}, values); err != nil {
		return "", sanitize(t.parsed.Name(), err)
	}
	return out.String(), nil
}

// values returns the data as templates see it.
func (d Data) values() any {
	v := map[string]any{"Cluster": d.Cluster, "Variables": d.Variables}
	if d.ControlPlane != nil {
		v["ControlPlane"] = d.ControlPlane
	}
	if d.InfraCluster != nil {
		v["InfraCluster"] = d.InfraCluster
	}
	return v
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = clone(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	default:
		return v
	}
}

// mutates reports whether the template calls a function that modifies its arguments.
func (t *Template) mutates() bool {
	for _, name := range []string{"set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"} {
		if t.calls[name] {
			return true
		}
	}
	return false
}

// calling matches the function that failed, and its message.
var calling = regexp.MustCompile(`(?s)error calling (\w+): (.*)$`)

// sanitize removes what functions say about their arguments, which may be secret. It keeps messages
// that the author of the template wrote or that are about the template itself.
func sanitize(name string, err error) error {
	var limit limitError
	if errors.As(err, &limit) {
		return fmt.Errorf("%s: %w", name, limit)
	}
	message := strings.TrimPrefix(err.Error(), "template: ")
	if m := calling.FindStringSubmatchIndex(message); len(m) > 3 && !slices.Contains([]string{"fail", "required", "index"}, message[m[2]:m[3]]) {
		message = message[:m[3]]
	}
	return errors.New(text.Truncate(message))
}

// countSteps makes each iteration of a loop and each call of a template cost a step.
func countSteps(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, node := range l.Nodes {
		switch n := node.(type) {
		case *parse.IfNode:
			countSteps(n.List)
			countSteps(n.ElseList)
		case *parse.WithNode:
			countSteps(n.List)
			countSteps(n.ElseList)
		case *parse.RangeNode:
			countSteps(n.List)
			countSteps(n.ElseList)
		}
	}
	l.Nodes = append([]parse.Node{tickNode()}, l.Nodes...)
}

// tickNode returns a node that calls tick.
func tickNode() parse.Node {
	one, err := template.New("").Funcs(template.FuncMap{tick: func() string { return "" }}).Parse("{{" + tick + "}}")
	if err != nil {
		panic(err) // the text is constant
	}
	return one.Root.Nodes[0]
}
