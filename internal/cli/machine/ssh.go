package machine

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/api"
)

func newSSH(_ *ui.IO, home *homeFlag) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "ssh NAME [COMMAND...]",
		Short: "Open a shell on a machine with your ssh",
		Long: `Find the address of a machine and become ssh to it. The machine accepts the keys
of its project, see "ssh-keys" in the API.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, d, err := home.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			argv, err := sshArguments(d, user, args[1:])
			if err != nil {
				return err
			}
			return become(argv)
		},
	}
	cmd.Flags().StringVarP(&user, "user", "l", "", "`user` to log in as (default: the machine's)")
	return cmd
}

// sshArguments is the command line of ssh. Machines come and go on the same
// addresses, so their host keys are not remembered.
func sshArguments(d api.Device, user string, command []string) ([]string, error) {
	target := address(d, true)
	if target == "-" {
		return nil, fmt.Errorf("machine %q has no address yet: it is %s", d.Hostname, d.State)
	}
	if user == "" {
		user = d.User
	}
	argv := []string{"ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", user + "@" + target}
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
