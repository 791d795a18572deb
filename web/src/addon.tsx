// An add-on with its revisions: roll back to one of them, or resume a paused rollout.

import { useEffect, useRef, useState } from "preact/hooks";
import { ActionDialog, type Request } from "./actions";
import type { Action, AddOnDetail } from "./model";
import { Age, Failure, useNow } from "./parts";
import { type State, useAnswer } from "./store";

interface Props {
  store: State;
  namespace: string;
  name: string;
  close: (message: string) => void;
}

export function AddOnDialog({ store, namespace, name, close }: Props) {
  const path = `/api/addons/${namespace}/${name}`;
  const { value, error } = useAnswer<AddOnDetail>(path, store.topics["add-ons"] ?? 0);
  const [doing, act] = useState<{ action: Action; asked: Request } | undefined>(undefined);
  if (doing) return <ActionDialog path={path} name={name} action={doing.action} asked={doing.asked} close={close} />;
  return <History name={name} value={value} error={error} act={act} close={() => close("")} />;
}

interface HistoryProps {
  name: string;
  value: AddOnDetail | undefined;
  error: Parameters<typeof Failure>[0]["problem"] | undefined;
  act: (chosen: { action: Action; asked: Request }) => void;
  close: () => void;
}

function History({ name, value, error, act, close }: HistoryProps) {
  const box = useRef<HTMLDialogElement>(null);
  const now = useNow(10_000);
  useEffect(() => box.current?.showModal(), []);
  const find = (what: Action["name"]) => value?.actions.find((a) => a.name === what);
  const [back, proceed] = [find("rollback"), find("continue")];
  const rollout = value?.addOn.rollout;
  return (
    <dialog ref={box} aria-labelledby="history-title" onClose={close}>
      <h2 id="history-title">History of {name}</h2>
      {error && <Failure problem={error} />}
      {rollout && <p>Rollout {rollout.phase}, wave {rollout.wave ?? 0} of {Math.max(rollout.waves ?? 0, rollout.wave ?? 0)}, ready on {rollout.updated ?? 0}
        {(rollout.failed ?? 0) > 0 && <b class="bad">, failed on {rollout.failed}</b>}</p>}
      {value?.unread && <p class="notice">{value.unread}</p>}
      {value && value.revisions.length > 0 && (
        <table>
          <thead><tr><th scope="col" class="num">Revision</th><th scope="col">Chart</th><th scope="col">Version</th><th scope="col" class="num">Age</th><th scope="col"><span class="visually-hidden">Action</span></th></tr></thead>
          <tbody>{value.revisions.map((r) => (
            <tr key={r.revision}>
              <td class="num">{r.revision}</td><td>{r.chart}</td><td>{r.version ?? "newest"}{r.good && <span class="badge" title="The last one that was rolled out completely">good</span>}</td>
              <td class="num"><Age at={r.created} now={now} /></td>
              <td class="num">{r.current ? "current" : back && (
                <button type="button" class="small" aria-label={"Roll back to revision " + r.revision} onClick={() => act({ action: back, asked: { action: "rollback", revision: r.revision } })}>Roll back</button>
              )}</td>
            </tr>
          ))}</tbody>
        </table>
      )}
      {value && !value.unread && value.revisions.length === 0 && <p class="dim">No revision is recorded yet.</p>}
      <footer>
        {proceed && <button type="button" onClick={() => act({ action: proceed, asked: { action: "continue" } })}>Resume rollout</button>}
        <button type="button" onClick={close}>Close</button>
      </footer>
    </dialog>
  );
}
