package build

import "sync"

// Task reports the progress of one build. A nil *Task is silent.
type Task struct {
	progress *Progress
	label    string
	listed   bool
	// packages maps the import paths of the task's packages to their identities in progress.
	packages map[string]string
	// programs are the main packages that are not compiled yet.
	programs map[string]bool

	release  sync.Once
	released chan struct{}
}

// Task adds something to build.
func (p *Progress) Task(label string) *Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlisted++
	return &Task{progress: p, label: label, released: make(chan struct{})}
}

// update changes what is reported.
func (t *Task) update(change func(*Progress)) {
	if t == nil {
		return
	}
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	change(t.progress)
}

// Doing reports an activity, such as "Linking".
func (t *Task) Doing(activity string) {
	t.update(func(p *Progress) { p.text = activity + " " + t.label })
}

func (t *Task) downloaded() {
	t.update(func(p *Progress) { p.modules++ })
}

// list adds the packages of the task.
func (t *Task) list(packages []listedPackage) {
	t.update(func(p *Progress) {
		t.known(p)
		t.packages, t.programs = map[string]string{}, map[string]bool{}
		for _, l := range packages {
			t.packages[l.path] = l.identity
			if l.program {
				t.programs[l.path] = true
			}
			if !p.packages[l.identity] {
				p.packages[l.identity] = false
			}
		}
	})
}

func (t *Task) known(p *Progress) {
	if !t.listed {
		t.listed = true
		p.unlisted--
	}
}

// compiled marks a package that the go command has started to compile.
func (t *Task) compiled(path string) {
	linking := false
	t.update(func(p *Progress) {
		if p.compiling.IsZero() {
			p.compiling = p.now()
		}
		p.compiled++
		p.packages[t.packages[path]] = true
		p.text = "Compiling " + t.label
		if t.programs[path] {
			delete(t.programs, path)
			linking = len(t.programs) == 0
		}
	})
	if linking {
		t.Doing("Linking")
		t.yield()
	}
}

// yield lets the next task compile: linking leaves cores idle.
func (t *Task) yield() {
	if t != nil {
		t.release.Do(func() { close(t.released) })
	}
}

// done marks all packages of the task: the others were in the go command's cache.
func (t *Task) done() {
	t.update(func(p *Progress) {
		t.known(p)
		for _, identity := range t.packages {
			p.packages[identity] = true
		}
	})
	t.yield()
}
