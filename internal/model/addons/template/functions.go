package template

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// functions returns the functions of sprig without those that read the environment or the network,
// with YAML functions added, and with limits for those that could allocate any amount of memory
// before their result is checked.
func functions() template.FuncMap {
	f := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(f, name)
	}
	// Built-in functions are limited only if they are in the map.
	f["print"], f["printf"], f["println"] = fmt.Sprint, fmt.Sprintf, fmt.Sprintln
	f["html"], f["js"], f["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	f["toYaml"], f["mustToYaml"] = toYAML, mustToYAML
	f["toYamlPretty"] = toYAML
	f["fromYaml"], f["mustFromYaml"] = fromYAML, mustFromYAML
	f["fromYamlArray"], f["fromJsonArray"] = fromArray, fromArray
	f["required"] = required
	// Sorted, so that the output is deterministic.
	f["keys"], f["values"] = keys, values
	f["repeat"] = func(count int, s string) string { return strings.Repeat(s, times(count, len(s))) }
	f["indent"], f["nindent"] = indent, func(n int, s string) string { return "\n" + indent(n, s) }
	f["until"] = func(count int) []int { return untilStep(0, count, sign(count)) }
	f["untilStep"] = untilStep
	f["seq"] = seq
	bound(f, "randAlphaNum", "randAlpha", "randAscii", "randNumeric")
	randBytes := f["randBytes"].(func(int) (string, error))
	f["randBytes"] = func(n int) (string, error) { return randBytes(times(n, 1)) }
	return f
}

func bound(f template.FuncMap, names ...string) {
	for _, name := range names {
		random := f[name].(func(int) string)
		f[name] = func(n int) string { return random(times(n, 1)) }
	}
}

// times returns n if n items of size bytes stay within the limit.
func times(n, size int) int {
	if n > MaxOutput/max(size, 1) {
		panic(errOutput)
	}
	return max(n, 0)
}

func toYAML(v any) string {
	text, err := mustToYAML(v)
	if err != nil {
		return "" // like sprig's functions without "must"
	}
	return text
}

func mustToYAML(v any) (string, error) {
	data, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(data), "\n"), err
}

// fromYAML returns an error under the key Error, as in charts.
func fromYAML(text string) map[string]any {
	m, err := mustFromYAML(text)
	if err != nil {
		return map[string]any{"Error": "not a YAML object"}
	}
	return m
}

func mustFromYAML(text string) (map[string]any, error) {
	m := map[string]any{}
	err := safeyaml.Unmarshal([]byte(text), &m)
	return m, err
}

// fromArray reads JSON too, which is YAML.
func fromArray(text string) []any {
	var l []any
	if err := safeyaml.Unmarshal([]byte(text), &l); err != nil {
		return []any{"not a YAML array"}
	}
	return l
}

func required(message string, v any) (any, error) {
	if v == nil || v == "" {
		return nil, fmt.Errorf("%s", message)
	}
	return v, nil
}

func keys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, sorted(d)...)
	}
	return out
}

func values(d map[string]any) []any {
	out := []any{}
	for _, key := range sorted(d) {
		out = append(out, d[key])
	}
	return out
}

func sorted(d map[string]any) []string {
	out := make([]string, 0, len(d))
	for key := range d {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func indent(n int, s string) string {
	pad := strings.Repeat(" ", times(n, 1+strings.Count(s, "\n")))
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func untilStep(from, to, step int) []int {
	if step == 0 || (to < from) != (step < 0) {
		return []int{}
	}
	n := math.Ceil((float64(to) - float64(from)) / float64(step))
	if n > maxNodes {
		panic(errValue)
	}
	out := make([]int, int(n))
	for i := range out {
		out[i] = from + i*step
	}
	return out
}

// seq is the shell's: its last argument is included.
func seq(n ...int) string {
	var from, step, to int
	switch len(n) {
	case 1:
		from, to = 1, n[0]
	case 2:
		from, to = n[0], n[1]
	case 3:
		from, step, to = n[0], n[1], n[2]
	default:
		return ""
	}
	direction := sign(to - from)
	if len(n) < 3 {
		step = direction
	}
	return strings.Trim(fmt.Sprint(untilStep(from, to+direction, step)), "[]")
}
