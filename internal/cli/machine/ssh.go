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

// sshOptions are the options of a login.
type sshOptions struct{ user, identity string }

func newSSH(io *ui.IO, home *homeFlag) *cobra.Command {
	var o sshOptions
	cmd := &cobra.Command{
		Use:   "ssh NAME [COMMAND...]",
		Short: "Log in to a machine with ssh",
		Long: `Run ssh with the address of a machine. The machine accepts the SSH keys that its
project had when the machine was created (see "ssh-keys" in the API) and those in its
userdata. Flags come before the name; everything after it is the command to run on
the machine.`,
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
				fmt.Fprintf(io.Err, "The project of %s had no SSH key when the machine was created; it accepts only keys from its userdata.\n", d.Hostname)
			}
			return execProcess(argv)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVarP(&o.user, "user", "l", "", "`user` to log in as (default: the default user of the machine)")
	cmd.Flags().StringVarP(&o.identity, "identity", "i", "", "`file` with the private key (default: the keys that ssh finds)")
	_ = cmd.MarkFlagFilename("identity")
	return cmd
}

// arguments returns the command line of ssh. Addresses are reused by other machines, so host keys
// are not remembered.
func (o sshOptions) arguments(d api.Device, command []string) ([]string, error) {
	target := address(d, true)
	if target == "-" {
		return nil, fmt.Errorf("machine %q has no address yet (state %s)", d.Hostname, d.State)
	}
	argv := []string{"ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"}
	if o.identity != "" {
		argv = append(argv, "-i", o.identity)
	}
	argv = append(argv, cmp.Or(o.user, d.User)+"@"+target)
	return append(argv, command...), nil
}

// execProcess replaces this process, so that ssh has the terminal to itself.
func execProcess(argv []string) error {
	for _, dir := range strings.Split(os.Getenv("PATH"), string(os.PathListSeparator)) {
		path := dir + "/" + argv[0]
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return syscall.Exec(path, argv, os.Environ())
		}
	}
	return fmt.Errorf("ssh not found in $PATH: install an SSH client, or use `drover machine console`")
}
