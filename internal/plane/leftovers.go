package plane

import "time"

// leftoverTimeout is generous for a killed process: a large one needs a moment to release its
// memory.
const leftoverTimeout = 10 * time.Second

// endLeftovers kills children that outlived their supervisor. Usually the kernel has done so,
// shortly after the supervisor's exit.
func (h Home) endLeftovers() error {
	last, err := h.readState()
	if err != nil {
		return nil //nolint:nilerr // an unreadable state names no processes
	}
	for _, process := range last.Children {
		if err := process.Kill(leftoverTimeout); err != nil {
			return err
		}
	}
	return nil
}
