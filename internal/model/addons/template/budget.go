package template

import (
	"fmt"
	"io"
	"reflect"
	"text/template"
	"time"
)

// Limits of one rendering. Real templates stay far below them.
const (
	// MaxOutput limits the output and any intermediate string.
	MaxOutput = 1 << 20
	maxNodes  = 1 << 18 // of a value
	maxSteps  = 1 << 18 // iterations and function calls
	maxDepth  = 500     // of a value
	// maxTime allows for a few private keys on a busy machine.
	maxTime = 15 * time.Second
)

// tick is a function that costs a step and does nothing. Templates do not use this name by
// accident.
const tick = "droverCountsAStep"

// limitError names the limit that was exceeded.
type limitError string

func (e limitError) Error() string { return string(e) }

// Exceeded limits.
var (
	errOutput = limitError(fmt.Sprintf("output exceeds %d bytes", MaxOutput))
	errValue  = limitError(fmt.Sprintf("value has more than %d elements, is nested too deeply or contains itself", maxNodes))
	errSteps  = limitError(fmt.Sprintf("template takes more than %d steps", maxSteps))
	errTime   = limitError(fmt.Sprintf("template takes longer than %s", maxTime))
)

// budget is what is left of the limits for one rendering.
type budget struct {
	steps int
	end   time.Time
}

func newBudget() *budget { return &budget{steps: maxSteps, end: time.Now().Add(maxTime)} }

// spend costs a step. It panics, which becomes an error of the template, because most functions
// can't return one.
func (b *budget) spend() {
	b.steps--
	if b.steps < 0 {
		panic(errSteps)
	}
	if time.Now().After(b.end) {
		panic(errTime)
	}
}

// guard makes each called function cost a step, and limits its result. Everything that a template
// handles comes from its data or from a function, so nothing grows without limit. Functions in
// instead replace those of the same name.
func (b *budget) guard(called, instead template.FuncMap) template.FuncMap {
	out := template.FuncMap{tick: func() string {
		b.spend()
		return ""
	}}
	for name, f := range called {
		if other, ok := instead[name]; ok {
			f = other
		}
		out[name] = b.wrap(name, reflect.ValueOf(f))
	}
	return out
}

func (b *budget) wrap(name string, f reflect.Value) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		b.spend()
		if multiplies[name] {
			checkProduct(args)
		}
		results := call(args)
		(&measure{left: maxNodes}).check(results[0], maxDepth)
		return results
	}).Interface()
}

// multiplies names functions whose result can be as long as the product of the lengths of their
// arguments.
var multiplies = map[string]bool{
	"replace": true, "join": true, "wrapWith": true, "regexReplaceAll": true, "mustRegexReplaceAll": true,
	"regexReplaceAllLiteral": true, "mustRegexReplaceAllLiteral": true,
}

func checkProduct(args []reflect.Value) {
	product := 1
	for _, arg := range args {
		for arg.Kind() == reflect.Interface {
			arg = arg.Elem()
		}
		if kind := arg.Kind(); kind == reflect.String || kind == reflect.Slice {
			if product *= max(1, arg.Len()); product > 64*MaxOutput {
				panic(errOutput)
			}
		}
	}
}

// measure is how much larger a value may be.
type measure struct{ left int }

// check walks a value, but never beyond the limits.
func (m *measure) check(v reflect.Value, depth int) {
	m.left--
	if m.left < 0 || depth < 0 {
		panic(errValue)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			m.check(v.Elem(), depth-1)
		}
	case reflect.String:
		if v.Len() > MaxOutput {
			panic(errOutput)
		}
		m.left -= v.Len() / 64
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			m.check(v.Index(i), depth-1)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			m.check(entries.Key(), depth-1)
			m.check(entries.Value(), depth-1)
		}
	default:
	}
}

// limited is a writer that fails when the output is too long.
type limited struct {
	to io.Writer
	n  int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n += len(p); l.n > MaxOutput {
		return 0, errOutput
	}
	return l.to.Write(p)
}
