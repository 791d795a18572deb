package cluster

import (
	"fmt"
	stdio "io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func newDescribe(io *ui.IO) *cobra.Command {
	var l view
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Show a cluster as a tree of objects",
		Long:    `Show a cluster as the tree of its objects, with the conditions that are not met.`,
		Example: `  drover describe cluster one
  drover describe cluster one -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: l.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := l.tree(cmd, args[0])
			if err != nil {
				return err
			}
			return l.output.Print(io.Out, tree, func(w stdio.Writer) error { return printTree(w, tree, time.Now()) })
		},
	}
	l.add(cmd)
	return cmd
}

// tree reads the objects of a cluster.
func (l *view) tree(cmd *cobra.Command, name string) (*inspect.Node, error) {
	plane, err := l.connect()
	if err != nil {
		return nil, err
	}
	found, err := plane.Find(cmd.Context(), l.namespace, name)
	if err != nil {
		return nil, err
	}
	return plane.Tree(cmd.Context(), found)
}

func printTree(w stdio.Writer, tree *inspect.Node, now time.Time) error {
	var rows [][]string
	tree.Walk(func(n *inspect.Node, depth int) {
		rows = append(rows, []string{strings.Repeat("  ", depth) + n.Kind + "/" + n.Name, state(n), age(n.Created, now), n.Detail})
		for _, c := range n.Conditions {
			if c.Status != metav1.ConditionTrue && n.Counts(c.Type) {
				rows = append(rows, []string{strings.Repeat("  ", depth+1) + "✗ " + c.Type, c.Reason, age(c.LastTransitionTime, now), c.Message})
			}
		}
	})
	return ui.Table(w, []string{"OBJECT", "STATE", "AGE", "DETAIL"}, rows)
}

// state summarizes an object in a word.
func state(n *inspect.Node) string {
	switch {
	case n.Deleting:
		return "Deleting"
	case n.Failure != "":
		return "Failed"
	case n.Paused:
		return "Paused"
	case n.Well():
		return "Ready"
	}
	return "NotReady"
}

func newWhy(io *ui.IO) *cobra.Command {
	var l view
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Explain why a cluster is not ready",
		Long: `Explain why a cluster is not ready: the chain of causes from the cluster down to the
object that everything else waits for, and what to do about it.`,
		Example: `  drover why cluster one
  drover why cluster one -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: l.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := l.tree(cmd, args[0])
			if err != nil {
				return err
			}
			answer := inspect.Why(tree, time.Now())
			return l.output.Print(io.Out, answer, func(w stdio.Writer) error { return printAnswer(w, answer, time.Now()) })
		},
	}
	l.add(cmd)
	return cmd
}

func printAnswer(w stdio.Writer, a inspect.Answer, now time.Time) error {
	for i, link := range a.Chain {
		because := ""
		if i > 0 {
			because = strings.Repeat("  ", i-1) + "└ because "
		}
		fmt.Fprintf(w, "%s%s (since %s)\n", because, link, age(link.Since, now))
	}
	for _, link := range a.Git {
		fmt.Fprintf(w, "In Git: %s (since %s; see `drover gitops status`)\n", link, age(link.Since, now))
	}
	_, err := fmt.Fprintf(w, "What to do: %s\n", a.Next)
	return err
}
