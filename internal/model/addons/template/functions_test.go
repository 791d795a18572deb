package template

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// panicOf returns the limit that a call exceeds, or nil.
func panicOf(call func()) (limit error) {
	defer func() {
		if r := recover(); r != nil {
			limit, _ = r.(limitError)
		}
	}()
	call()
	return nil
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct{ n, size, want int }{{0, 1, 0}, {-5, 1, 0}, {3, 0, 3}, {MaxOutput, 1, MaxOutput}, {2, MaxOutput / 2, 2}} {
		if got := times(tt.n, tt.size); got != tt.want {
			t.Errorf("%d times %d bytes: %d, want %d", tt.n, tt.size, got, tt.want)
		}
	}
	for _, tt := range [][2]int{{MaxOutput + 1, 1}, {3, MaxOutput / 2}, {math.MaxInt, 0}, {1, MaxOutput + 1}} {
		if err := panicOf(func() { times(tt[0], tt[1]) }); !errors.Is(err, errOutput) {
			t.Errorf("%d times %d bytes: %v, want %v", tt[0], tt[1], err, errOutput)
		}
	}
}

func TestIndent(t *testing.T) {
	for _, tt := range []struct {
		n        int
		in, want string
	}{
		{0, "a\nb", "a\nb"}, {-3, "a", "a"}, {2, "", "  "}, {2, "a\nb\n", "  a\n  b\n  "}, {1, "ü\n\nß", " ü\n \n ß"},
	} {
		if got := indent(tt.n, tt.in); got != tt.want {
			t.Errorf("%q indented by %d is %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestUntilStep(t *testing.T) {
	for _, tt := range []struct {
		from, to, step int
		want           []int
	}{
		{0, 3, 1, []int{0, 1, 2}},
		{0, 5, 2, []int{0, 2, 4}},
		{3, 0, -1, []int{3, 2, 1}},
		{5, 0, -2, []int{5, 3, 1}},
		{0, 0, 1, []int{}},
		{0, 3, 0, []int{}},
		{0, 3, -1, []int{}},
		{3, 0, 1, []int{}},
	} {
		if diff := cmp.Diff(tt.want, untilStep(tt.from, tt.to, tt.step)); diff != "" {
			t.Errorf("from %d to %d by %d (-want +got):\n%s", tt.from, tt.to, tt.step, diff)
		}
	}
	for _, tt := range [][3]int{{0, maxNodes + 1, 1}, {math.MinInt, math.MaxInt, 1}, {math.MaxInt, math.MinInt, -1}} {
		if err := panicOf(func() { untilStep(tt[0], tt[1], tt[2]) }); !errors.Is(err, errValue) {
			t.Errorf("%v: got %v, want %v", tt, err, errValue)
		}
	}
}

func TestSeq(t *testing.T) {
	for _, tt := range []struct {
		args []int
		want string
	}{
		{[]int{3}, "1 2 3"},
		{[]int{0}, "1 0"},
		{[]int{2, 4}, "2 3 4"},
		{[]int{4, 2}, "4 3 2"},
		{[]int{0, 2, 4}, "0 2 4"},
		{[]int{0, 2, 5}, "0 2 4"},
		{[]int{1, 0, 5}, ""},
		{[]int{5, 1, 1}, ""},
		{nil, ""},
		{[]int{1, 2, 3, 4}, ""},
	} {
		if got := seq(tt.args...); got != tt.want {
			t.Errorf("seq %v is %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestYAMLFunctions(t *testing.T) {
	if got := toYAML(map[string]any{"b": []any{1, "x"}, "a": nil}); got != "a: null\nb:\n- 1\n- x" {
		t.Errorf("YAML %q", got)
	}
	if got := toYAML(func() {}); got != "" {
		t.Errorf("what can't be written is %q", got)
	}
	if _, err := mustToYAML(func() {}); err == nil {
		t.Error("what can't be written is no error")
	}
	for text, want := range map[string]map[string]any{
		"a: 1":    {"a": 1.0},
		"":        {},
		"- a":     {"Error": "not a YAML object"},
		"a: {":    {"Error": "not a YAML object"},
		`{"a":1}`: {"a": 1.0},
	} {
		if diff := cmp.Diff(want, fromYAML(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string][]any{"[1, a]": {1.0, "a"}, "- b": {"b"}, "": nil, "a: b": {"not a YAML array"}, "[": {"not a YAML array"}} {
		if diff := cmp.Diff(want, fromArray(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestRequired(t *testing.T) {
	for _, missing := range []any{nil, ""} {
		if _, err := required("set it", missing); err == nil || err.Error() != "set it" {
			t.Errorf("%#v: error %v", missing, err)
		}
	}
	for _, there := range []any{0, false, "x", []any{}} {
		if got, err := required("set it", there); err != nil || !reflect.DeepEqual(got, there) {
			t.Errorf("%#v becomes %#v, error %v", there, got, err)
		}
	}
}

func TestKeysAndValuesAreSorted(t *testing.T) {
	d := map[string]any{"b": 2, "a": 1, "ü": 3}
	if diff := cmp.Diff([]string{"a", "b", "ü", "0"}, keys(d, map[string]any{"0": nil})); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{1, 2, 3}, values(d)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if len(keys()) != 0 || len(values(nil)) != 0 {
		t.Error("nothing has keys or values")
	}
}

func TestValuesAreMeasured(t *testing.T) {
	deep := any("bottom")
	for range maxDepth + 1 {
		deep = []any{deep}
	}
	loop := map[string]any{}
	loop["self"] = loop
	for name, tt := range map[string]struct {
		value any
		want  error
	}{
		"nothing":             {nil, nil},
		"a pointer":           {new(int), nil},
		"a null pointer":      {(*int)(nil), nil},
		"a long string":       {strings.Repeat("x", MaxOutput), nil},
		"a longer string":     {strings.Repeat("x", MaxOutput+1), errOutput},
		"bytes":               {make([]byte, maxNodes*2), nil},
		"many elements":       {make([]int, maxNodes+1), errValue},
		"a deep value":        {deep, errValue},
		"a value in itself":   {loop, errValue},
		"a map":               {map[string]any{"a": []any{1, "x"}}, nil},
		"many longer strings": {slices.Repeat([]string{strings.Repeat("x", MaxOutput)}, 17), errValue},
	} {
		err := panicOf(func() { (&measure{left: maxNodes}).check(reflect.ValueOf(&tt.value).Elem(), maxDepth) })
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

func TestProductsAreChecked(t *testing.T) {
	values := func(all ...any) (out []reflect.Value) {
		for i := range all {
			out = append(out, reflect.ValueOf(&all[i]).Elem())
		}
		return out
	}
	long := strings.Repeat("x", MaxOutput)
	if err := panicOf(func() { checkProduct(values("a", 7, "", long, strings.Repeat("y", 64))) }); err != nil {
		t.Errorf("%v at the limit", err)
	}
	if err := panicOf(func() { checkProduct(values(long, strings.Repeat("y", 65))) }); !errors.Is(err, errOutput) {
		t.Errorf("%v beyond the limit, want %v", err, errOutput)
	}
}

func TestBudgetEnds(t *testing.T) {
	b := &budget{steps: 2, end: time.Now().Add(time.Hour)}
	for range 2 {
		if err := panicOf(b.spend); err != nil {
			t.Fatalf("%v within the budget", err)
		}
	}
	if err := panicOf(b.spend); !errors.Is(err, errSteps) {
		t.Errorf("got %v, want %v", err, errSteps)
	}
	if err := panicOf((&budget{steps: 2, end: time.Now().Add(-time.Second)}).spend); !errors.Is(err, errTime) {
		t.Errorf("got %v, want %v", err, errTime)
	}
}

func TestOutputIsLimited(t *testing.T) {
	var out strings.Builder
	l := &limited{to: &out}
	if n, err := l.Write(make([]byte, MaxOutput)); n != MaxOutput || err != nil {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if _, err := l.Write([]byte("x")); !errors.Is(err, errOutput) {
		t.Errorf("error %v, want %v", err, errOutput)
	}
	if out.Len() != MaxOutput {
		t.Errorf("%d bytes were written", out.Len())
	}
}

func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		`template: v:1:2: executing "v" at <fail>: error calling fail: set a version`: `v:1:2: executing "v" at <fail>: error calling fail: set a version`,
		`template: v:1:2: error calling atoi: parsing "hunter22"`:                     `v:1:2: error calling atoi`,
		"template: v:1: unexpected EOF":                                               "v:1: unexpected EOF",
		"error calling b64dec: illegal\nhunter22":                                     "error calling b64dec",
	} {
		if got := sanitize("v", errors.New(in)).Error(); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := sanitize("v", errSteps); !errors.Is(got, errSteps) || !strings.HasPrefix(got.Error(), "v: template takes more than") {
		t.Errorf("a limit becomes %v", got)
	}
	if got := sanitize("v", errors.New(strings.Repeat("é", 5000))).Error(); len(got) > 1024 {
		t.Errorf("an error of %d bytes", len(got))
	}
}

func TestStandInsKeepTheirShape(t *testing.T) {
	for text, want := range map[string]string{
		"{{ len (randAlphaNum 20) }}":                          "20",
		"{{ len (randAlpha 0) }}":                              "0",
		"{{ randNumeric 3 }}":                                  "000",
		"{{ randInt 5 10 }}":                                   "5",
		"{{ uuidv4 }}":                                         "00000000-0000-4000-8000-000000000000",
		`{{ shuffle "abc" }}`:                                  "abc",
		`{{ dateInZone "2006-01-02" now "UTC" }}`:              "1970-01-01",
		`{{ dateInZone "2006" (toDate "2006" "2011") "UTC" }}`: "2011",
	} {
		parsed, err := Parse("v", text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsed.execute(Data{}, standIns)
		if err != nil || got != want {
			t.Errorf("%s: %q, error %v; want %q", text, got, err, want)
		}
	}
	first := mark("a", 1)
	if first == mark("b", 1) || first == mark("a", 2) || first != mark("a", 1) {
		t.Error("marks do not depend on the name and the arguments only")
	}
	then := time.Unix(7, 0)
	for _, tt := range []struct{ in, want any }{{then, then}, {&then, then}, {(*time.Time)(nil), epoch}, {"today", epoch}, {int64(3), int64(3)}, {nil, epoch}} {
		if got := timeOrEpoch(tt.in); got != tt.want {
			t.Errorf("%#v is the moment %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestClonesShareNothing(t *testing.T) {
	in := map[string]any{"a": []any{map[string]any{"b": 1}}, "c": "x"}
	out, ok := clone(in).(map[string]any)
	if !ok || !reflect.DeepEqual(in, out) {
		t.Fatalf("the clone is %v", out)
	}
	out["a"].([]any)[0].(map[string]any)["b"] = 2
	out["c"] = "y"
	if diff := cmp.Diff(map[string]any{"a": []any{map[string]any{"b": 1}}, "c": "x"}, in); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
}

func TestUsesAreCombined(t *testing.T) {
	a := Uses{Cluster: Use{Any: true}, InfraCluster: Use{Any: true, Status: true}}
	b := Uses{Cluster: Use{Status: true}, ControlPlane: Use{Any: true}}
	want := Uses{Cluster: Use{Any: true, Status: true}, ControlPlane: Use{Any: true}, InfraCluster: Use{Any: true, Status: true}}
	if a.Or(b) != want || b.Or(a) != want || want.Or(Uses{}) != want {
		t.Errorf("together %+v, want %+v", a.Or(b), want)
	}
}
