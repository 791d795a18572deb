package bounded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/client-go/kubernetes/scheme"
)

func TestMemoryOfJSONIsEstimated(t *testing.T) {
	const item = 1000
	for text, want := range map[string]int64{
		``:                         0,
		`"a,b{[]}"`:                0,
		`{}`:                       valueCost,
		`{"a":1,"b":2}`:            valueCost + memberCost,
		`[[[1,2]],[]]`:             4*valueCost + valueCost + item,
		`{"items":[{},null,0]}`:    3*valueCost + 2*item,
		`{"a":{"items":[{},null]}`: 4*valueCost + valueCost,
		`{"a\\":["\",\"",""]}`:     2*valueCost + item,
		`{"a\\\"":["\\","\\\","]}`: 2*valueCost + item,
		"]]}\n[1 ,\t2]":            valueCost + item,
	} {
		for size, from := range map[string]io.Reader{"whole": strings.NewReader(text), "by byte": iotest.OneByteReader(strings.NewReader(text))} {
			s := &scanner{limits: Limits{Body: 1 << 20, Item: item}}
			if _, err := io.Copy(adder{s}, from); err != nil || s.cost != want || s.size != int64(len(text)) {
				t.Errorf("%s, %s: cost %d, want %d, size %d, error %v", text, size, s.cost, want, s.size, err)
			}
		}
	}
}

// adder makes a scanner a writer.
type adder struct{ *scanner }

func (a adder) Write(data []byte) (int, error) { return len(data), a.add(data) }

// TestMemoryIsBounded sends small responses that take a lot of memory.
func TestMemoryIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"empty items":   `{"items":[` + strings.Repeat(`{},`, 1<<10) + `{}]}`,
		"null items":    `{"items":[` + strings.Repeat(`null,`, 1<<10) + `null]}`,
		"nested values": `{"items":[{"spec":{"containers":[` + strings.Repeat(`{},`, 1<<12) + `{}]}}]}`,
		"brackets":      strings.Repeat(`[`, 1<<13),
		"members":       `{` + strings.Repeat(`"a":0,`, 1<<14) + `"a":0}`,
	} {
		url := peer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		l := Limits{Peer: "test", Body: 1 << 20, Memory: 1 << 20, Item: 1 << 10}
		var large *TooLargeError
		for _, query := range []string{"", "?watch=true"} {
			if _, err := get(t, clientWith(l), url+query); !errors.As(err, &large) || !large.Decoded {
				t.Errorf("%s%s: error %v", name, query, err)
			}
		}
		l.Memory = 0
		if data, err := get(t, clientWith(l), url); err != nil || string(data) != text {
			t.Errorf("%s without a limit: read %d bytes, error %v", name, len(data), err)
		}
	}
}

// TestEventsOfAStreamAreMeasuredOneByOne sends events that take too much memory together, then one
// that does so by itself.
func TestEventsOfAStreamAreMeasuredOneByOne(t *testing.T) {
	small := `{"object":[` + strings.Repeat(`0,`, 100) + `0]}`
	large := `{"object":[` + strings.Repeat(`0,`, 1000) + `0]}`
	url := peer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		_, _ = io.WriteString(w, strings.Repeat(small, 100)+large)
	})
	data, err := get(t, clientWith(Limits{Body: 100, Event: 1 << 20, Memory: 1 << 20}), url+"?watch=true")
	var failed *TooLargeError
	if !errors.As(err, &failed) || !failed.Decoded {
		t.Errorf("read %d bytes, error %v", len(data), err)
	}
}

func TestBudgetCountsMemory(t *testing.T) {
	url := peer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"devices":[{},{}]}`) })
	c, ctx := clientWith(Limits{Body: 100, Memory: 10 << 10, Item: 1 << 10}), WithBudget(t.Context(), 3<<10)
	if _, err := getWith(ctx, t, c, url); err != nil {
		t.Fatal(err)
	}
	var large *TooLargeError
	if _, err := getWith(ctx, t, c, url); !errors.As(err, &large) {
		t.Errorf("got error %v, want a %T", err, large)
	}
}

// TestEstimatesCoverAllKinds compares the estimate for values with the types of Kubernetes, other
// than items of lists. The largest of them may take twice as much.
func TestEstimatesCoverAllKinds(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(kind reflect.Type) {
		if seen[kind] {
			return
		}
		seen[kind] = true
		switch kind.Kind() {
		case reflect.Struct:
			for field := range kind.NumField() {
				check(kind.Field(field).Type)
			}
		case reflect.Slice:
			if size := kind.Elem().Size(); size > 2*valueCost {
				t.Errorf("an element of %s takes %d bytes, more than %d", kind, size, 2*valueCost)
			}
			check(kind.Elem())
		case reflect.Map, reflect.Pointer:
			check(kind.Elem())
		}
	}
	for _, kind := range scheme.Scheme.AllKnownTypes() {
		if items, ok := kind.FieldByName("Items"); ok {
			kind = items.Type.Elem()
		}
		check(kind)
	}
}

// BenchmarkScanner compares the scanner with a decoder of the same list.
func BenchmarkScanner(b *testing.B) {
	node := `{"metadata":{"name":"node-1","labels":{"kubernetes.io/arch":"amd64","kubernetes.io/hostname":"node-1"}},` +
		`"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"}],` +
		`"images":[{"names":["registry.k8s.io/pause@sha256:` + strings.Repeat("0123456789abcdef", 4) + `","registry.k8s.io/pause:3.10"],"sizeBytes":320368}]}}`
	list := []byte(`{"items":[` + strings.Repeat(node+",", 4000) + node + `]}`)
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(list)))
		for b.Loop() {
			s := &scanner{limits: Limits{Body: 1 << 30}}
			for chunk := range bytes.Lines(list) {
				if err := s.add(chunk); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(list)))
		for b.Loop() {
			var into any
			if err := json.Unmarshal(list, &into); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzScanner compares the estimate for valid JSON with that of a decoder, whatever pieces it
// arrives in.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{`{"items":[{},null,0,"\\\""]}`, `[[1,[2,3]],{"a":{"b":[]}}]`, `{"a\\":["\",\"",""]}`, ` "\u005c" `, `{"":[{"":{}}],"b":1e9}`} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		s := &scanner{limits: Limits{Body: 1 << 30, Item: 2 * valueCost}}
		step = max(1, step)
		for begin := 0; begin < len(data); begin += step {
			if err := s.add(data[begin:min(len(data), begin+step)]); err != nil {
				t.Fatal(err)
			}
		}
		if !json.Valid(data) {
			return
		}
		if want := costOf(t, json.NewDecoder(bytes.NewReader(data))); s.cost != want || s.size != int64(len(data)) {
			t.Errorf("cost %d, want %d, size %d", s.cost, want, s.size)
		}
	})
}

// costOf computes the estimate from the tokens of a decoder.
func costOf(t *testing.T, d *json.Decoder) int64 {
	t.Helper()
	var cost int64
	type container struct {
		object bool
		values int64
	}
	var open []container
	begin := func() {
		if len(open) > 0 {
			open[len(open)-1].values++
		}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return cost
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			begin()
			cost += valueCost
			open = append(open, container{object: token == json.Delim('{')})
		case json.Delim('}'), json.Delim(']'):
			last := open[len(open)-1]
			commas := max(0, last.values-1)
			switch {
			case last.object:
				cost += max(0, last.values/2-1) * memberCost // names and values
			case len(open) <= itemDepth:
				cost += commas * 2 * valueCost
			default:
				cost += commas * valueCost
			}
			open = open[:len(open)-1]
		default:
			begin()
		}
	}
}
