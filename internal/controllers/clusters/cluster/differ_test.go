package cluster

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		name, have, want string
		covered          bool
	}{
		{"the same", `{"a":1}`, `{"a":1}`, true},
		{"another value", `{"a":2}`, `{"a":1}`, false},
		{"nothing there", `{}`, `{"a":1}`, false},
		{"more than wanted", `{"a":1,"b":2}`, `{"a":1}`, true},
		{"more than wanted, deep down", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1}}`, true},
		{"nothing wanted", `{"a":1}`, `{}`, true},
		{"an empty map is none", `{}`, `{"a":{}}`, true},
		{"an empty map of empty maps is none", `{}`, `{"a":{"b":{}}}`, true},
		{"null is none", `{}`, `{"a":null}`, true},
		{"an empty list is none", `{}`, `{"a":[]}`, true},
		{"an empty list where there are some", `{"a":[1]}`, `{"a":[]}`, false},
		{"a list that is longer", `{"a":[1,2]}`, `{"a":[1]}`, false},
		{"a list that is shorter", `{"a":[1]}`, `{"a":[1,2]}`, false},
		{"a list in another order", `{"a":[2,1]}`, `{"a":[1,2]}`, false},
		{"a list whose elements have defaults", `{"a":[{"b":1,"c":2}]}`, `{"a":[{"b":1}]}`, true},
		{"a list whose elements differ", `{"a":[{"b":2}]}`, `{"a":[{"b":1}]}`, false},
		{"another type", `{"a":"1"}`, `{"a":1}`, false},
		{"a value where a map is wanted", `{"a":1}`, `{"a":{"b":1}}`, false},
		{"false is a value", `{}`, `{"a":false}`, false},
	} {
		var have, want any
		if err := errors.Join(json.Unmarshal([]byte(tc.have), &have), json.Unmarshal([]byte(tc.want), &want)); err != nil {
			t.Fatal(err)
		}
		if got := covers(have, want); got != tc.covered {
			t.Errorf("%s: got %t, want %t", tc.name, got, tc.covered)
		}
	}
}
