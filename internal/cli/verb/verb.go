// Package verb has the commands that are words for what is done, such as get and delete. What it is done to is below them, and comes from
// the packages of those things.
package verb

import "github.com/spf13/cobra"

// words are all verbs, and what their help says.
var words = map[string]struct{ short, long string }{
	"generate": {"Write specs of clusters and packages to begin with", "Write specs and manifests to standard output, to begin with. Nothing is changed."},
	"list":     {"List the packages that there are to install", "List what there is to install. Nothing is changed."},
	"install":  {"Install packages by name", "Install what a bundle has, by name."},
	"create":   {"Create clusters and packages from files, and users", "Create what is in a file, and fail if it exists; or a user."},
	"apply":    {"Create or change packages from files", "Create or change what is in a file. Fields that others set stay as they are."},
	"get":      {"Show clusters, machines, packages, bundles and users in a table", "Show clusters, machines, packages, bundles and users in a table, or whole with -o json or -o yaml."},
	"describe": {"Show everything about clusters and packages", "Show everything about clusters and packages, with their conditions."},
	"delete":   {"Delete clusters, packages and users", "Delete clusters with their machines, packages from their clusters, or a user's way in."},
	"upgrade":  {"Bring clusters to a new spec, packages to a newer bundle", "Bring clusters to a new spec, or packages to a newer bundle."},
	"why":      {"Say why a cluster is not ready", "Say why something is not ready, down to what everything else waits for."},
	"events":   {"Show what happened to a cluster", "Show what happened, in the order of time."},
	"copy":     {"Copy packages between registries", "Copy packages, with their charts and images, between registries."},
}

// Of returns the command of a verb, which is added to root the first time.
func Of(root *cobra.Command, group, word string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == word {
			return c
		}
	}
	c := &cobra.Command{
		Use:     word,
		Short:   words[word].short,
		Long:    words[word].long,
		GroupID: group,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(c)
	return c
}
