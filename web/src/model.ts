// What the server sends. A Go test compares the fields with those of internal/operate/web.

export type Health = "failing" | "progressing" | "deleting" | "paused" | "ready";

export interface Count {
  ready: number;
  total: number;
  failed?: number;
  drifted?: number;
}

export interface Row {
  id: string;
  kind: "drover" | "capi";
  namespace: string;
  name: string;
  health: Health;
  waiting?: string;
  cause?: string;
  version?: string;
  want?: string;
  versions?: string[];
  controlPlane: Count;
  workers: Count;
  addOns: Count;
  packages: Count;
  git?: string;
  gitRevision?: string;
  manager?: string;
  metro?: string;
  owner?: string;
  labels?: Record<string, string>;
  created: string;
  changed: string;
  revision: string;
}

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export interface TreeNode {
  kind: string;
  namespace: string;
  name: string;
  detail?: string;
  created: string;
  conditions?: Condition[];
  deleting?: boolean;
  paused?: boolean;
  failure?: string;
  behind?: boolean;
  ready: boolean;
  // unmet are the conditions that must be met for the object to be ready, and are not.
  unmet?: string[];
  remedy?: string;
  children?: TreeNode[];
}

export interface Link {
  kind: string;
  namespace: string;
  name: string;
  condition?: string;
  reason?: string;
  message: string;
  since?: string;
}

export interface Answer {
  ready: boolean;
  chain?: Link[];
  next: string;
  git?: Link[];
}

export interface Stage {
  name: string;
  at: string;
  seconds: number;
  begin?: string;
}

export interface Operation {
  name: "creation" | "change";
  stages: Stage[];
  hidden?: number;
}

export interface Release {
  cluster: string;
  release?: string;
  namespace?: string;
  version?: string;
  revision?: number;
  status?: string;
  ready: string;
  reason?: string;
  message?: string;
  addOn?: string;
  clusterNamespace: string;
  chart: string;
  drifted?: boolean;
  failure?: string;
}

export interface PackageItem {
  namespace: string;
  name: string;
  package: string;
  version?: string;
  target?: string;
  state: string;
  detail?: string;
  drifted?: boolean;
}

export interface Group {
  name: string;
  count: number;
  counts?: number[];
  auto?: boolean;
}

export interface Action {
  name: "pause" | "resume" | "scale" | "upgrade" | "kubeconfig" | "delete" | "rollback" | "continue";
  unusable?: string;
  groups?: Group[];
  versions?: string[];
}

export interface Detail {
  row: Row;
  tree: TreeNode;
  why: Answer;
  operation: Operation;
  spec: string;
  machines: MachineItem[];
  addOns: Release[];
  packages: PackageItem[];
  actions: Action[];
  hidden?: boolean;
}

export interface Entry {
  time: string;
  seconds: number;
  object: string;
  what: string;
  warning?: boolean;
}

export interface Timeline {
  entries: Entry[];
}

export interface Difference {
  object: string;
  path: string;
  from: string;
  to: string;
}

export interface Plan {
  command: string;
  changes: Difference[];
  notes?: string[];
  state: string;
}

export interface Rollout {
  phase?: string;
  wave?: number;
  waves?: number;
  updated?: number;
  failed?: number;
}

export interface AddOn {
  namespace: string;
  name: string;
  chart: string;
  tool: string;
  ready: string;
  message?: string;
  paused?: boolean;
  matched: number;
  readyOn: number;
  failedOn: number;
  rollout?: Rollout;
}

export interface AddOns {
  addOns: AddOn[];
  releases: Release[];
}

export interface Revision {
  revision: number;
  digest: string;
  created: string;
  chart: string;
  version?: string;
  current?: boolean;
  good?: boolean;
}

export interface AddOnDetail {
  addOn: AddOn;
  revisions: Revision[];
  unread?: string;
  actions: Action[];
}

export interface AuditedChange {
  path: string;
  from?: string;
  to?: string;
}

export interface AuditItem {
  time: string;
  action: string;
  user: string;
  object?: string;
  changes?: AuditedChange[];
  evicted?: number;
}

export interface MachineItem {
  namespace: string;
  name: string;
  cluster: string;
  clusterID?: string;
  role: string;
  version?: string;
  phase?: string;
  ready: string;
  message?: string;
  node?: string;
  nodeReady?: string;
  address?: string;
  device?: string;
  plan?: string;
  created: string;
}

export type Progress = "rejected" | "pending" | "unknown" | "applied" | "superseded";

export interface Repository {
  namespace: string;
  name: string;
  url?: string;
  branch: string;
  revision?: string;
  state: string;
  message?: string;
  unconfirmed?: boolean;
  clusters: InRepository[];
  changes: Commit[];
}

export interface InRepository {
  id: string;
  name: string;
  revision?: string;
  progress: Progress;
  state: string;
  message?: string;
}

export interface Commit {
  name: string;
  cluster: string;
  id: string;
  action: string;
  command?: string;
  user?: string;
  commit?: string;
  progress: Progress;
  message?: string;
  created: string;
}

export interface PlaneInfo {
  host: string;
  version?: string;
  kubernetes?: string[];
  bundles?: string[];
  hidden?: string[];
  namespaces?: string[];
  now: string;
}

export interface Check {
  name: string;
  ok: boolean;
}

export interface Server {
  version?: string;
  checks?: Check[];
  certificate?: string;
  clientCertificate?: string;
  memory?: number;
  started?: string;
  unknown?: string[];
}
