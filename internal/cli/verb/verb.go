// Package verb has the commands that are verbs, such as get and delete. The packages of nouns add
// their commands below them.
package verb

import "github.com/spf13/cobra"

// help is the help of a verb: a line, and a paragraph.
type help struct{ short, long string }

func helps() map[string]help {
	return map[string]help{
		"generate": {"Write starter specs and manifests", "Write starter specs of clusters and packages to standard output. Nothing is changed."},
		"list":     {"List packages that can be installed", "List packages that can be installed. Nothing is changed."},
		"install":  {"Install packages by name", "Install packages of a bundle by name."},
		"create":   {"Create clusters, packages and users", "Create clusters and packages from files, and users. Fails if they exist."},
		"apply":    {"Create or change packages from files", "Create or change packages from files. Fields that the files don't mention stay as they are."},
		"get":      {"List clusters, machines, packages, bundles and users", "List clusters, machines, packages, bundles and users as a table, or in full with -o json or -o yaml."},
		"describe": {"Show clusters and packages in detail", "Show clusters and packages in detail, with their conditions."},
		"delete":   {"Delete clusters, packages and users", "Delete clusters with their machines, packages from their clusters, or users."},
		"upgrade":  {"Upgrade clusters and packages", "Upgrade clusters to a new spec, or packages to a newer bundle."},
		"why":      {"Explain why a cluster is not ready", "Explain why a cluster is not ready, down to the cause that everything else waits for."},
		"events":   {"Show the timeline of a cluster", "Show the timeline of a cluster."},
		"renew":    {"Renew certificates of clusters", "Renew the certificates of clusters. The clusters stay available."},
		"promote":  {"Turn workload clusters into management clusters", "Turn workload clusters into management clusters. No machine is replaced."},
		"adopt":    {"Take clusters over from other management planes", "Take clusters over from other management planes. No machine is replaced."},
		"resume":   {"Resume clusters that were left paused", "Resume clusters that a recovery left paused."},
		"copy":     {"Copy packages between registries", "Copy packages with their charts and images between registries."},
	}
}

// Of returns the command of a verb, and adds it to root if it is not there.
func Of(root *cobra.Command, group, word string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == word {
			return c
		}
	}
	text := helps()[word]
	c := &cobra.Command{
		Use:     word,
		Short:   text.short,
		Long:    text.long,
		GroupID: group,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(c)
	return c
}
