package document

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// sequence removes, changes and adds items of a list in block style.
func (e *editor) sequence(node *yaml.Node, current, desired []any, limit int) error {
	items, err := e.elements(node, limit)
	if err != nil {
		return err
	}
	pairs, err := match(current, desired)
	if err != nil || len(items) != len(current) || len(items) == 0 {
		return errInPlace
	}
	kept := map[int]bool{}
	previous := -1
	for i, at := range pairs {
		if at < 0 {
			err = e.insert(items, previous, desired[i])
		} else {
			kept[at], previous = true, at
			err = e.changeItem(items[at], current[at], desired[i])
		}
		if err != nil {
			return err
		}
	}
	for at, item := range items {
		if kept[at] {
			continue
		}
		if err := e.remove(item); err != nil {
			return err
		}
	}
	return nil
}

func (e *editor) changeItem(item element, current, desired any) error {
	if equal(current, desired) {
		return nil
	}
	return e.change(item, current, desired)
}

// insert adds an item after another one, or in front of the first one.
func (e *editor) insert(items []element, previous int, value any) error {
	text, err := e.style.render([]any{value})
	if err != nil {
		return err
	}
	text = indented(text, items[0].column-1)
	if previous >= 0 {
		return e.insertAfter(items[previous], text)
	}
	if !e.alone(items[0]) {
		return errInPlace
	}
	at := e.start(e.head(items[0]))
	e.replace(at, at, text)
	return nil
}

// match returns for each desired item the index of the current one, or -1. An item that was renamed
// is the one at the same index. It fails if items that stay change their order.
func match(current, desired []any) ([]int, error) {
	have, want := identities(current), identities(desired)
	if have == nil || want == nil {
		have, want = indexes(len(current)), indexes(len(desired))
	}
	before, after := positions(have), positions(want)
	pairs := make([]int, len(want))
	previous := -1
	for i, id := range want {
		at, found := before[id]
		if !found && len(have) == len(want) {
			_, stays := after[have[i]]
			at, found = i, !stays
		}
		if !found {
			pairs[i] = -1
			continue
		}
		pairs[i] = at
		if pairs[i] <= previous {
			return nil, errInPlace
		}
		previous = pairs[i]
	}
	return pairs, nil
}

// positions returns the indexes of identities.
func positions(ids []string) map[string]int {
	all := make(map[string]int, len(ids))
	for i, id := range ids {
		all[id] = i
	}
	return all
}

// identities returns the names of items, or the items if they are scalars. It returns nil if an
// item has no identity of its own.
func identities(list []any) []string {
	ids := make([]string, 0, len(list))
	seen := map[string]bool{}
	for _, item := range list {
		object, named := item.(map[string]any)
		id := text(object, "name")
		if !named && isScalar(item) {
			data, err := json.Marshal(item)
			if err != nil {
				return nil
			}
			id = string(data)
		}
		if id == "" || seen[id] {
			return nil
		}
		seen[id] = true
		ids = append(ids, id)
	}
	return ids
}

// indexes identifies items by their position.
func indexes(count int) []string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	return ids
}
