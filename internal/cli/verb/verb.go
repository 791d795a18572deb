// Package verb has the commands that are verbs, such as get and delete. The packages of nouns add
// their commands below them.
package verb

import "github.com/spf13/cobra"

// help returns the help of a verb: a line, and a paragraph.
func help(word string) (short, long string) {
	switch word {
	case "generate":
		return "Write starter specs and manifests", "Write starter specs of clusters and packages to standard output. Nothing is changed."
	case "list":
		return "List packages that can be installed", "List packages that can be installed. Nothing is changed."
	case "install":
		return "Install packages by name", "Install packages of a bundle by name."
	case "create":
		return "Create clusters, packages and users", "Create clusters and packages from files, and users. Fails if they exist."
	case "apply":
		return "Create or change packages from files", "Create or change packages from files. Fields that the files don't mention stay as they are."
	case "get":
		return "List clusters, machines, packages, bundles and users", "List clusters, machines, packages, bundles and users as a table, or in full with -o json or -o yaml."
	case "describe":
		return "Show clusters and packages in detail", "Show clusters and packages in detail, with their conditions."
	case "delete":
		return "Delete clusters, packages and users", "Delete clusters with their machines, packages from their clusters, or users."
	case "upgrade":
		return "Upgrade clusters and packages", "Upgrade clusters to a new spec, or packages to a newer bundle."
	case "why":
		return "Explain why a cluster is not ready", "Explain why a cluster is not ready, down to the cause that everything else waits for."
	case "events":
		return "Show the timeline of a cluster", "Show the timeline of a cluster."
	case "renew":
		return "Renew certificates of clusters", "Renew the certificates of clusters. The clusters stay available."
	case "promote":
		return "Turn workload clusters into management clusters", "Turn workload clusters into management clusters. No machine is replaced."
	case "adopt":
		return "Take clusters over from other management planes", "Take clusters over from other management planes. No machine is replaced."
	case "copy":
		return "Copy packages between registries", "Copy packages with their charts and images between registries."
	}
	return "", ""
}

// Of returns the command of a verb, and adds it to root if it is not there.
func Of(root *cobra.Command, group, word string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == word {
			return c
		}
	}
	short, long := help(word)
	c := &cobra.Command{
		Use:     word,
		Short:   short,
		Long:    long,
		GroupID: group,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(c)
	return c
}
