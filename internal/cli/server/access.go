package server

import (
	"errors"
	"fmt"
	stdio "io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/userdir"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

// spec holds the flags that describe a server, for add and edit.
type spec struct {
	ssh, identityFile, bastion, bastionIdentityFile, hostKey string
	agent                                                    bool
	passwordStdin, passphraseStdin, bastionPasswordStdin     bool
	plan, metro, facility, project, disk                     string
	labels                                                   []string
}

func (s *spec) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.ssh, "ssh", "", "`USER@HOST[:PORT]` of the SSH server; the user is root or may use sudo without a password")
	f.StringVar(&s.identityFile, "identity-file", "", "`file` with the private key, which the metal service reads whenever it connects")
	f.BoolVar(&s.agent, "ssh-agent", false, "use the keys of the agent at $SSH_AUTH_SOCK, which must run as long as the metal service")
	f.BoolVar(&s.passwordStdin, "password-stdin", false, "read the password of the SSH user from standard input; a key is safer")
	f.BoolVar(&s.passphraseStdin, "passphrase-stdin", false, "read the passphrase of the private key from standard input")
	f.StringVar(&s.hostKey, "host-key", "", "public `key` of the server, as in a known_hosts file (default: pin the one that it presents first)")
	f.StringVar(&s.bastion, "bastion", "", "`USER@HOST[:PORT]` of the SSH server through which this one is reached")
	f.StringVar(&s.bastionIdentityFile, "bastion-identity-file", "", "`file` with the private key for the bastion (default: that of the server)")
	f.BoolVar(&s.bastionPasswordStdin, "bastion-password-stdin", false, "read the password for the bastion from standard input; a key is safer")
	f.StringVar(&s.plan, "plan", "", "`plan` under which machines order the server (default: server.small, server.medium or server.large, by its size)")
	f.StringVar(&s.metro, "metro", "", "`metro` in which the server is (default: it serves all)")
	f.StringVar(&s.facility, "facility", "", "`facility` of that metro")
	f.StringVar(&s.project, "project", "", "`ID` of the project to reserve the server for; the reservation has the ID of the server")
	f.StringVar(&s.disk, "disk", "", "`device` of the operating system, such as /dev/sda")
	f.StringArrayVar(&s.labels, "label", nil, "`KEY=VALUE` label; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "passphrase-stdin", "bastion-password-stdin")
}

// apply changes what the flags name.
func (s *spec) apply(cmd *cobra.Command, io *ui.IO, e *inventory.Entry) error {
	changed := cmd.Flags().Changed
	for name, field := range map[string]*string{"plan": &e.Plan, "metro": &e.Metro, "facility": &e.Facility, "project": &e.Project, "disk": &e.Disk} {
		if changed(name) {
			*field = cmd.Flag(name).Value.String()
		}
	}
	if changed("label") {
		labels, err := inventory.ParseLabels(s.labels)
		if err != nil {
			return ui.Usagef("--label: %v", err)
		}
		e.Labels = labels
	}
	if err := s.applySSH(changed, e); err != nil {
		return ui.Usage(err)
	}
	return s.readSecret(io, e)
}

func (s *spec) applySSH(changed func(string) bool, e *inventory.Entry) error {
	if changed("ssh") {
		to, err := parseTarget("--ssh", s.ssh)
		if err != nil {
			return err
		}
		if e.SSH != nil { // The way to log in stays.
			to.KeyFile, to.AgentSocket, to.Bastion = e.SSH.KeyFile, e.SSH.AgentSocket, e.SSH.Bastion
		}
		e.SSH = to
	}
	if e.SSH == nil {
		return errors.New("the server has no SSH access: add --ssh USER@HOST")
	}
	var err error
	if changed("identity-file") {
		if e.SSH.KeyFile, err = userdir.Expand(s.identityFile); err != nil {
			return err
		}
	}
	if changed("host-key") {
		e.SSH.HostKey = s.hostKey
	}
	if s.agent {
		if e.SSH.AgentSocket = os.Getenv("SSH_AUTH_SOCK"); e.SSH.AgentSocket == "" {
			return errors.New("--ssh-agent: no agent runs: start one with `eval $(ssh-agent)`, or use --identity-file")
		}
	}
	if changed("bastion") {
		e.SSH.Bastion = nil
	}
	if s.bastion != "" {
		if e.SSH.Bastion, err = parseTarget("--bastion", s.bastion); err != nil {
			return err
		}
		e.SSH.Bastion.KeyFile, e.SSH.Bastion.AgentSocket = e.SSH.KeyFile, e.SSH.AgentSocket
	}
	if changed("bastion-identity-file") && e.SSH.Bastion != nil {
		e.SSH.Bastion.KeyFile, err = userdir.Expand(s.bastionIdentityFile)
	}
	return err
}

// parseTarget reads USER@HOST[:PORT].
func parseTarget(flag, text string) (*driver.SSH, error) {
	user, host, ok := strings.Cut(text, "@")
	if !ok || user == "" || host == "" {
		return nil, fmt.Errorf("%s %q: use USER@HOST or USER@HOST:PORT, such as admin@192.168.1.11", flag, text)
	}
	out := &driver.SSH{User: user, Host: strings.Trim(host, "[]")}
	if name, port, err := net.SplitHostPort(host); err == nil {
		out.Host = name
		if out.Port, err = strconv.Atoi(port); err != nil || out.Port < 1 || out.Port > 65535 {
			return nil, fmt.Errorf("%s %q: %q is not a port", flag, text, port)
		}
	}
	return out, nil
}

// maxSecret bounds a password.
const maxSecret = 1 << 10

func (s *spec) readSecret(io *ui.IO, e *inventory.Entry) error {
	if !s.passwordStdin && !s.passphraseStdin && !s.bastionPasswordStdin {
		return nil
	}
	if s.bastionPasswordStdin && e.SSH.Bastion == nil {
		return ui.Usagef("--bastion-password-stdin: the server has no bastion: add --bastion USER@HOST")
	}
	data, err := stdio.ReadAll(stdio.LimitReader(io.In, maxSecret))
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return ui.Usagef("standard input is empty: pipe the secret into the command")
	}
	switch {
	case s.passwordStdin:
		e.Secrets.Password = secret
	case s.bastionPasswordStdin:
		e.Secrets.BastionPassword = secret
	default:
		e.Secrets.KeyPassphrase = secret
	}
	return nil
}
