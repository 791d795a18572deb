package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is a systemd service, as far as machines support it.
type unit struct {
	name         string
	path         string
	description  string
	kind         string // simple, oneshot, …
	conditions   []string
	env          []string
	envFiles     []string
	pre, start   []string // command lines
	post         []string
	restart      string
	restartDelay time.Duration
	dir          string
	user         string
	remain       bool
	wantedBy     []string
	aliases      []string
	// ignored are settings without effect.
	ignored []string
}

// unitDirs are the directories of units, in order of precedence.
func unitDirs() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"}
}

// unitName completes a name as systemctl does.
func unitName(name string) string {
	if strings.Contains(filepath.Base(name), ".") {
		return filepath.Base(name)
	}
	return filepath.Base(name) + ".service"
}

// loadUnit reads a unit and its drop-ins below root.
func loadUnit(root, name string) (*unit, error) {
	name = unitName(name)
	u := &unit{name: name, kind: "simple", restart: "no", restartDelay: 100 * time.Millisecond}
	for _, dir := range unitDirs() {
		path := filepath.Join(root, dir, name)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		u.path = path
		if err := u.parse(string(data)); err != nil {
			return nil, fmt.Errorf("unit %q: %w", path, err)
		}
		break
	}
	if u.path == "" {
		return nil, &unitMissingError{name: name}
	}
	if err := u.loadDropIns(root); err != nil {
		return nil, err
	}
	return u, nil
}

type unitMissingError struct{ name string }

func (e *unitMissingError) Error() string { return "Unit " + e.name + " could not be found." }

// loadDropIns reads drop-ins sorted by name; a file hides one of the same name in a later
// directory.
func (u *unit) loadDropIns(root string) error {
	files := map[string]string{}
	for _, dir := range slices.Backward(unitDirs()) {
		matches, _ := filepath.Glob(filepath.Join(root, dir, u.name+".d", "*.conf"))
		for _, m := range matches {
			files[filepath.Base(m)] = m
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		data, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		if err := u.parse(string(data)); err != nil {
			return fmt.Errorf("unit %q: %w", files[name], err)
		}
	}
	return nil
}

// parse adds the settings of one file.
func (u *unit) parse(text string) error {
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return fmt.Errorf("line %q is neither a section nor a setting", line)
			}
			// Units of machines do not use systemd's specifiers.
			u.set(section, strings.TrimSpace(key), strings.ReplaceAll(strings.TrimSpace(value), "%%", "%"))
		}
	}
	return nil
}

// harmless settings have no effect on a machine.
func harmless() []string {
	return []string{
		"Documentation", "After", "Before", "Wants", "Requires", "DefaultDependencies", "StartLimitIntervalSec", "StartLimitInterval",
		"StartLimitBurst", "TimeoutStartSec", "TimeoutStopSec", "KillMode", "Delegate", "LimitNOFILE", "LimitNPROC", "LimitCORE", "TasksMax",
		"OOMScoreAdjust", "StandardOutput", "StandardError", "SyslogIdentifier", "CPUAccounting", "MemoryAccounting", "NotifyAccess",
	}
}

// settings are the supported settings, by section and name.
var settings = map[string]func(u *unit, value string){
	"Unit.Description":         func(u *unit, v string) { u.description = v },
	"Unit.ConditionPathExists": func(u *unit, v string) { u.conditions = appendOrReset(u.conditions, v) },
	"Service.Type":             func(u *unit, v string) { u.kind = v },
	"Service.Environment":      func(u *unit, v string) { u.env = appendOrReset(u.env, splitWords(v)...) },
	"Service.EnvironmentFile":  func(u *unit, v string) { u.envFiles = appendOrReset(u.envFiles, v) },
	"Service.ExecStartPre":     func(u *unit, v string) { u.pre = appendOrReset(u.pre, v) },
	"Service.ExecStart":        func(u *unit, v string) { u.start = appendOrReset(u.start, v) },
	"Service.ExecStartPost":    func(u *unit, v string) { u.post = appendOrReset(u.post, v) },
	"Service.Restart":          func(u *unit, v string) { u.restart = v },
	"Service.RestartSec":       func(u *unit, v string) { u.restartDelay = seconds(v) },
	"Service.WorkingDirectory": func(u *unit, v string) { u.dir = v },
	"Service.User":             func(u *unit, v string) { u.user = v },
	"Service.RemainAfterExit":  func(u *unit, v string) { u.remain = v == "yes" || v == "true" },
	"Install.WantedBy":         func(u *unit, v string) { u.wantedBy = append(u.wantedBy, strings.Fields(v)...) },
	"Install.Alias":            func(u *unit, v string) { u.aliases = append(u.aliases, strings.Fields(v)...) },
}

func (u *unit) set(section, key, value string) {
	if apply, ok := settings[section+"."+key]; ok {
		apply(u, value)
		return
	}
	if !slices.Contains(harmless(), key) {
		u.ignored = append(u.ignored, section+"."+key)
	}
}

// appendOrReset implements the rule that an empty value clears earlier ones.
func appendOrReset(list []string, values ...string) []string {
	if len(values) == 0 || (len(values) == 1 && values[0] == "") {
		return nil
	}
	return append(list, values...)
}

// seconds parses "10", "10s", "500ms" or "1min 30s".
func seconds(value string) time.Duration {
	value = strings.ReplaceAll(value, " ", "")
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	d, err := time.ParseDuration(strings.ReplaceAll(value, "min", "m"))
	if err != nil {
		return time.Second
	}
	return d
}

// environment returns the environment of the unit's processes.
func (u *unit) environment() ([]string, error) {
	env := append(baseEnv(), u.env...)
	for _, file := range u.envFiles {
		path, optional := strings.CutPrefix(file, "-")
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && optional {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if key, value, ok := strings.Cut(line, "="); ok && line[0] != '#' && line[0] != ';' {
				env = append(env, key+"="+unquote(value))
			}
		}
	}
	return env, nil
}

// argv expands a command line. "$A" as a separate word becomes as many words as the variable has,
// "${A}" stays one. It also reports a leading minus, which means that failures are ignored.
func argv(line string, env []string) (words []string, mayFail bool) {
	for line != "" && strings.ContainsRune("-@+!:", rune(line[0])) {
		mayFail = mayFail || line[0] == '-'
		line = line[1:]
	}
	get := func(name string) string {
		for _, pair := range slices.Backward(env) {
			if v, ok := strings.CutPrefix(pair, name+"="); ok {
				return v
			}
		}
		return ""
	}
	for _, word := range splitWords(line) {
		if name, ok := strings.CutPrefix(word, "$"); ok && name != "" && !strings.ContainsAny(name, "${}/") {
			words = append(words, splitWords(get(name))...)
			continue
		}
		words = append(words, expandBraces(word, get))
	}
	return words, mayFail
}

func expandBraces(word string, get func(string) string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(word, "${")
		b.WriteString(before)
		if !ok {
			return strings.ReplaceAll(b.String(), "$$", "$")
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String()
		}
		b.WriteString(get(name))
		word = after
	}
}

// splitWords splits at white space outside quotes.
func splitWords(line string) []string {
	var w wordSplitter
	for _, c := range line {
		w.add(c)
	}
	w.end()
	return w.words
}

// wordSplitter reads a command line one character at a time.
type wordSplitter struct {
	words   []string
	word    strings.Builder
	inWord  bool
	quote   rune // the current quote, or 0
	escaped bool
}

func (w *wordSplitter) add(c rune) {
	switch {
	case w.escaped:
		w.word.WriteRune(c)
		w.escaped = false
	case c == '\\' && w.quote != '\'':
		w.escaped, w.inWord = true, true
	case w.quote != 0 && c == w.quote:
		w.quote = 0
	case w.quote == 0 && (c == '"' || c == '\''):
		w.quote, w.inWord = c, true
	case w.quote == 0 && (c == ' ' || c == '\t'):
		w.end()
	default:
		w.word.WriteRune(c)
		w.inWord = true
	}
}

func (w *wordSplitter) end() {
	if w.inWord {
		w.words = append(w.words, w.word.String())
		w.word.Reset()
	}
	w.inWord = false
}

func unquote(value string) string {
	value = strings.TrimSpace(value)
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}
