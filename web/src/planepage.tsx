// The management plane: what runs there, and what its API server says about itself.

import type { ComponentChildren } from "preact";
import { age } from "./fleet";
import type { PlaneInfo, Server } from "./model";
import { Age, Failure, useNow } from "./parts";
import { type State, useAnswer } from "./store";

export function PlanePage({ store }: { store: State }) {
  const { value: plane } = useAnswer<PlaneInfo>("/api/plane", store.connection);
  const { value: server, error } = useAnswer<Server>("/api/server", store.connection);
  const now = useNow(10_000);
  return (
    <main id="main" class="page">
      <h1>Management plane</h1>
      {plane && <Runs plane={plane} />}
      {error ? <Failure problem={error} /> : null}
      {server && <Api server={server} now={now} />}
      {plane && <You plane={plane} expires={server?.clientCertificate} now={now} />}
      <p class="dim">Processes, backups and alerts are not in the API. See <code>drover status</code> on the host of an embedded plane.</p>
    </main>
  );
}

function Facts({ title, children }: { title: string; children: ComponentChildren }) {
  return <section class="card" aria-label={title}><h2>{title}</h2><dl class="pairs">{children}</dl></section>;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

function Runs({ plane: p }: { plane: PlaneInfo }) {
  return (
    <Facts title="Drover">
      <Fact name="Address">{p.host}</Fact>
      <Fact name="Version">{p.version || <span class="dim">not known</span>}</Fact>
      <Fact name="Kubernetes for clusters">{p.kubernetes?.join(", ") || <span class="dim">not known</span>}</Fact>
      <Fact name="Package bundles">{p.bundles?.join(", ") || <span class="dim">{p.version ? "none" : "not known"}</span>}</Fact>
    </Facts>
  );
}

function Api({ server: s, now }: { server: Server; now: number }) {
  const checks = s.checks ?? [];
  const failed = checks.filter((c) => !c.ok);
  return (
    <Facts title="API server">
      <Fact name="Kubernetes">{s.version}</Fact>
      {checks.length > 0 && (
        <Fact name="Ready">{failed.length === 0
          ? <span class="release good"><i class="dot" aria-hidden="true" />all {checks.length} checks pass</span>
          : <span class="release bad"><i class="dot" aria-hidden="true" />failing: {failed.map((c) => c.name).join(", ")}</span>}</Fact>
      )}
      {s.certificate && <Fact name="Certificate"><Expiry at={s.certificate} now={now} /></Fact>}
      {s.memory ? <Fact name="Memory">{Math.round(s.memory / 1e6).toLocaleString("en")} MB</Fact> : null}
      {s.started && <Fact name="Running for"><Age at={s.started} now={now} /></Fact>}
      {s.unknown && <Fact name="Not known">{s.unknown.map((u) => <div key={u}>{u}</div>)}</Fact>}
    </Facts>
  );
}

function You({ plane: p, expires, now }: { plane: PlaneInfo; expires: string | undefined; now: number }) {
  return (
    <Facts title="Your access">
      <Fact name="Clusters in">{p.namespaces?.join(", ") || "all namespaces"}</Fact>
      <Fact name="Hidden from you, or not served">{p.hidden?.join(", ") || "nothing"}</Fact>
      {expires && <Fact name="Certificate"><Expiry at={expires} now={now} /></Fact>}
    </Facts>
  );
}

// soon is when the end of a certificate deserves attention.
const soon = 14 * 24 * 3600 * 1000;

function Expiry({ at, now }: { at: string; now: number }) {
  const left = Date.parse(at) - now;
  if (left <= 0) return <b class="bad">expired on {at.slice(0, 10)}</b>;
  return <span class={left < soon ? "state warn" : ""}>expires in {age(left)}, on {at.slice(0, 10)}</span>;
}
