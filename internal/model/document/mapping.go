package document

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mapping removes, changes and adds entries of a mapping in block style. An entry that a merge key
// provides can be overridden, but not removed.
func (e *editor) mapping(node *yaml.Node, current, desired map[string]any, limit int) error {
	entries, err := e.elements(node, limit)
	if err != nil {
		return err
	}
	byKey, err := keysOf(entries)
	if err != nil {
		return err
	}
	var added []string
	for _, key := range union(current, desired) {
		want, wanted := desired[key]
		i, exists := byKey[key]
		switch {
		case equal(current[key], want):
		case wanted && exists:
			err = e.change(entries[i], current[key], want)
		case wanted:
			added = append(added, key)
		case exists:
			err = e.removeEntry(entries, i, desired)
		default:
			err = errInPlace
		}
		if err != nil {
			return err
		}
	}
	return e.append(entries[len(entries)-1], added, desired)
}

// keysOf returns the indexes of entries by key. It fails for keys that JSON spells differently.
func keysOf(entries []element) (map[string]int, error) {
	byKey := map[string]int{}
	for i, entry := range entries {
		if entry.key.Kind != yaml.ScalarNode || keyName(entry.key) != entry.key.Value {
			return nil, errInPlace
		}
		byKey[entry.key.Value] = i
	}
	if len(byKey) == 0 {
		return nil, errInPlace
	}
	return byKey, nil
}

// union returns the keys of two maps, sorted.
func union(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// append adds entries after the last one.
func (e *editor) append(last element, keys []string, values map[string]any) error {
	if len(keys) == 0 {
		return nil
	}
	added := map[string]any{}
	for _, key := range keys {
		added[key] = values[key]
	}
	text, err := e.style.render(added)
	if err != nil {
		return err
	}
	return e.insertAfter(last, indented(text, last.column-1))
}

// insertAfter adds lines after an element.
func (e *editor) insertAfter(last element, text string) error {
	line, err := e.extent(last)
	if err != nil {
		return err
	}
	at := e.start(line + 1)
	if at == e.end(line) { // The last line has no line break, and shall not get one.
		text = "\n" + strings.TrimSuffix(text, "\n")
	}
	e.replace(at, at, text)
	return nil
}

// removeEntry removes an entry. If it follows a dash, the next entry takes its place.
func (e *editor) removeEntry(entries []element, i int, desired map[string]any) error {
	if e.alone(entries[i]) {
		return e.remove(entries[i])
	}
	if i+1 == len(entries) {
		return errInPlace
	}
	next := entries[i+1]
	last, err := e.extent(entries[i])
	if _, stays := desired[next.key.Value]; !stays || err != nil || last+1 != next.first {
		return errInPlace
	}
	from, err := e.offset(entries[i].key)
	if err != nil {
		return err
	}
	to, err := e.offset(next.key)
	if err != nil {
		return err
	}
	e.replace(from, to, "")
	return nil
}

// remove deletes the lines of an element with the comments that belong to it.
func (e *editor) remove(one element) error {
	if !e.alone(one) {
		return errInPlace
	}
	last, err := e.extent(one)
	if err != nil {
		return err
	}
	e.replace(e.start(e.head(one)), e.start(last+1), "")
	return nil
}
