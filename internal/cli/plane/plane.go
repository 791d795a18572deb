// Package plane holds the commands that work on the embedded management plane: up, down, status,
// backup, restore and encryption.
package plane

import (
	"cmp"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

// AddCommands puts the commands on the root.
func AddCommands(root *cobra.Command, io *ui.IO) {
	for _, cmd := range []*cobra.Command{
		newUp(io), newDown(io), newStatus(io), newBackup(io), newRestore(io), newEncryption(io),
	} {
		cmd.GroupID = "plane"
		root.AddCommand(cmd)
	}
}

// homeFlag is --home, the same on every command.
type homeFlag struct{ dir string }

func (f *homeFlag) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.dir, "home", "", "`directory` with all state of the embedded plane (default $DROVER_HOME, or ~/.drover)")
	_ = cmd.MarkPersistentFlagDirname("home")
}

// home is absolute, because the supervisor outlives the shell's directory.
func (f *homeFlag) home() (plane.Home, error) {
	dir, err := filepath.Abs(cmp.Or(f.dir, plane.DefaultHome()))
	return plane.Home{Dir: dir}, err
}

// progress shows the events of the plane.
func progress(io *ui.IO, labels map[string]string) (plane.Progress, *ui.Progress) {
	p := ui.NewProgress(io, labels)
	return func(e plane.Event) {
		switch e.Status {
		case plane.StageStarted:
			p.Start(e.Stage)
		case plane.StageDone:
			p.Done(e.Stage, e.Duration)
		case plane.StageSkipped:
			p.Skipped(e.Stage, e.Error)
		case plane.StageFailed:
			p.Failed(e.Stage, e.Duration)
		}
	}, p
}
