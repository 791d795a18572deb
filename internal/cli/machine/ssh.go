package machine

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
)

// sshOptions are what a user may decide about a login.
type sshOptions struct{ user, identity string }

func newSSH(io *ui.IO, home *homeFlag) *cobra.Command {
	var o sshOptions
	cmd := &cobra.Command{
		Use:   "ssh NAME [COMMAND...]",
		Short: "Open a shell on a machine with your ssh",
		Long: `Find the address of a machine and become ssh to it. The machine accepts the keys
that its project had when it was made, see "ssh-keys" in the API, and those of
its userdata. Flags come before the name; what follows it is run on the machine.`,
		Example: `  drover machine ssh web-1
  drover machine ssh -i ~/.ssh/lab web-1 journalctl -u kubelet`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: home.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, d, err := home.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			argv, err := o.arguments(d, args[1:])
			if err != nil {
				return err
			}
			if len(d.SSHKeys) == 0 {
				fmt.Fprintf(io.Err, "The project of %s had no SSH key when it was made; only keys in its userdata open it.\n", d.Hostname)
			}
			return become(argv)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVarP(&o.user, "user", "l", "", "`user` to log in as (default: the machine's)")
	cmd.Flags().StringVarP(&o.identity, "identity", "i", "", "`file` with the private key (default: those of your ssh)")
	_ = cmd.MarkFlagFilename("identity")
	return cmd
}

// arguments is the command line of ssh. Machines come and go on the same
// addresses, so their host keys are not remembered.
func (o sshOptions) arguments(d api.Device, command []string) ([]string, error) {
	target := address(d, true)
	if target == "-" {
		return nil, fmt.Errorf("machine %q has no address yet: it is %s", d.Hostname, d.State)
	}
	argv := []string{"ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"}
	if o.identity != "" {
		argv = append(argv, "-i", o.identity)
	}
	argv = append(argv, cmp.Or(o.user, d.User)+"@"+target)
	return append(argv, command...), nil
}

// become replaces this process, so that the terminal is ssh's alone.
func become(argv []string) error {
	for _, dir := range strings.Split(os.Getenv("PATH"), string(os.PathListSeparator)) {
		path := dir + "/" + argv[0]
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return syscall.Exec(path, argv, os.Environ())
		}
	}
	return fmt.Errorf("there is no ssh on this host's PATH: install an ssh client, or use `drover machine console`")
}
