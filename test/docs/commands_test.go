package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/test/docs/page"
)

// TestCommandsInTextExist checks the commands that pages mention in their text, and their flags.
func TestCommandsInTextExist(t *testing.T) {
	t.Parallel()
	root := cli.NewCommand(ui.System())
	for _, name := range pages(t) {
		data, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range page.Code(string(data)) {
			checkCommand(t, root, name, code)
		}
	}
}

// TestCommandsInHelpExist checks the examples of all commands.
func TestCommandsInHelpExist(t *testing.T) {
	t.Parallel()
	root := cli.NewCommand(ui.System())
	commands := []*cobra.Command{root}
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		for line := range strings.Lines(cmd.Example) {
			checkCommand(t, root, cmd.CommandPath(), strings.TrimSpace(line))
		}
	}
}

func checkCommand(t *testing.T, root *cobra.Command, where, text string) {
	t.Helper()
	for _, command := range page.Alternatives(text) {
		words := strings.Fields(command)
		if len(words) < 2 || words[0] != "drover" || words[1] == "anywhere" {
			continue
		}
		if err := resolve(root, words[1:]); err != nil {
			t.Errorf("%s: %s: %v", where, command, err)
		}
	}
}

// resolve finds a command and its flags.
func resolve(root *cobra.Command, words []string) error {
	if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w[:1], "|>#…&") }); end >= 0 {
		words = words[:end]
	}
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if len(rest) > 0 && cmd.HasSubCommands() && !strings.HasPrefix(rest[0], "-") && !takes(cmd, rest[0]) {
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), rest[0])
	}
	if cmd.DisableFlagParsing || cmd.Name() == "ssh" {
		return nil // Flags belong to another program.
	}
	cmd.InitDefaultHelpFlag()
	for _, word := range rest {
		if !hasFlag(cmd, word) {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), word)
		}
	}
	return nil
}

// takes reports whether a command with commands below it has an argument of its own.
func takes(cmd *cobra.Command, argument string) bool {
	return cmd.Runnable() && cmd.Args != nil && cmd.ValidateArgs([]string{argument}) == nil
}

// hasFlag reports whether a word is no flag, or one of a command.
func hasFlag(cmd *cobra.Command, word string) bool {
	name, isFlag := strings.CutPrefix(word, "-")
	if !isFlag || name == "" {
		return true
	}
	if long, isLong := strings.CutPrefix(name, "-"); isLong {
		long, _, _ = strings.Cut(long, "=")
		return long == "" || cmd.Flag(long) != nil
	}
	short := name[:1]
	return cmd.Flags().ShorthandLookup(short) != nil || cmd.InheritedFlags().ShorthandLookup(short) != nil
}

func TestResolve(t *testing.T) {
	root := cli.NewCommand(ui.System())
	for command, want := range map[string]string{
		"up --metal memory":                      "",
		"up --foreground | tee log":              "",
		"metal project list -o json":             "",
		"kubectl get pods --watch":               "",
		"create cluster -f one.yaml --dry-run":   "",
		"create cluster -f one.yaml --force=yes": "has no flag --force=yes",
		"create cluster -Z":                      "has no flag -Z",
		"backup plane.backup":                    "",
		"backup schedule":                        "",
		"start":                                  `drover has no command "start"`,
		"metal begin":                            `drover metal has no command "begin"`,
	} {
		err := resolve(root, strings.Fields(command))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) && want != "" {
			t.Errorf("%s: got %v, want %q", command, err, want)
		}
	}
}
