package spec

// ClusterRules exports the rules for tests.
var ClusterRules = clusterRules
