package plane

import "time"

// leftoverTimeout is long for a process that has been killed: a large one needs a moment to give
// its memory back.
const leftoverTimeout = 10 * time.Second

// endLeftovers kills children that outlived their supervisor. The kernel does that by itself, a
// moment after the supervisor's end at the latest.
func (h Home) endLeftovers() error {
	last, err := h.readState()
	if err != nil {
		return nil //nolint:nilerr // without a readable state there is nobody to look for
	}
	for _, process := range last.Children {
		if err := process.Kill(leftoverTimeout); err != nil {
			return err
		}
	}
	return nil
}
