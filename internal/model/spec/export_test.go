package spec

// ClusterRules are the rules that tests want to see at work one by one.
var ClusterRules = clusterRules
