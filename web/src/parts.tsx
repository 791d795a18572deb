// Small parts that several pages share.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { age, visible } from "./fleet";
import type { Count, Health } from "./model";
import type { Problem } from "./store";

const words: Record<Health, string> = {
  failing: "Failing", progressing: "Progressing", deleting: "Deleting", paused: "Paused", ready: "Ready",
};

export const healthWord = (h: Health) => words[h];

// Pill shows a health by color, shape and word.
export function Pill({ health }: { health: Health }) {
  return <span class={"pill " + health}><i class="dot" aria-hidden="true" />{words[health]}</span>;
}

// Age shows how long ago something was.
export function Age({ at, now }: { at: string; now: number }) {
  if (!at || at.startsWith("0001")) return <span class="dim">–</span>;
  return <time dateTime={at} title={new Date(at).toLocaleString()}>{age(now - Date.parse(at))}</time>;
}

// useNow returns the current time, and renders every few seconds.
export function useNow(every: number): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

// Tally shows how many of something are ready.
export function Tally({ count, what }: { count: Count; what: string }) {
  if (count.total === 0 && count.ready === 0) return <span class="dim" aria-label={"no " + what}>–</span>;
  const bad = count.failed ?? 0;
  const tone = bad > 0 ? "bad" : count.ready < count.total ? "warn" : "";
  const notes = [bad ? `${bad} failed` : "", count.drifted ? `${count.drifted} drifted` : ""].filter(Boolean).join(", ");
  return (
    <span class={"tally " + tone} title={`${count.ready} of ${count.total} ${what} ready${notes ? ", " + notes : ""}`}>
      {count.ready}<span class="of">/{count.total}</span>
      {bad > 0 && <b class="mark" aria-label={`${bad} failed`}>✕{bad}</b>}
      {bad === 0 && (count.drifted ?? 0) > 0 && <b class="mark drift" aria-label={`${count.drifted} drifted`}>≠{count.drifted}</b>}
    </span>
  );
}

// Code renders text in which `backticks` mark commands.
export function Code({ text }: { text: string }) {
  return <>{text.split("`").map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
}

// Failure shows an error and what to do about it.
export function Failure({ problem }: { problem: Problem }) {
  return (
    <div class="failure" role="alert">
      <strong>{capital(problem.message)}</strong>
      {problem.remedy && <p><Code text={problem.remedy} /></p>}
    </div>
  );
}

export const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);

// Command shows a command that can be copied.
export function Command({ text, label }: { text: string; label: string }) {
  const [copied, set] = useState(false);
  const copy = () => void navigator.clipboard.writeText(text).then(() => set(true), () => undefined);
  return (
    <div class="command">
      <span class="label">{label}</span>
      <pre tabIndex={0}>{text}</pre>
      <button type="button" class="small" onClick={copy}>{copied ? "Copied" : "Copy"}</button>
    </div>
  );
}

// Once renders its content only when the key changes, so that one changed object renders one line.
export class Once extends Component<{ of: unknown[]; children: () => ComponentChildren }> {
  override shouldComponentUpdate(next: Readonly<{ of: unknown[] }>): boolean {
    return next.of.some((v, i) => v !== this.props.of[i]);
  }

  override render() {
    return this.props.children();
  }
}

interface ListProps {
  count: number;
  line: number;
  label: string;
  // selected is kept in view.
  selected?: number;
  head: ComponentChildren;
  children: (index: number) => ComponentChildren;
}

// List renders only the visible ones of many lines.
export function List({ count, line, label, selected, head, children }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [range, set] = useState<[number, number]>([0, 40]);
  const measure = () => {
    const el = box.current;
    if (!el) return;
    const next = visible(el.scrollTop, el.clientHeight, line, count);
    if (next[0] !== range[0] || next[1] !== range[1]) set(next);
  };
  useEffect(measure);
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(el);
    return () => observer.disconnect();
  }, [line, count]);
  useEffect(() => {
    const el = box.current;
    if (!el || selected === undefined || selected < 0) return;
    const top = selected * line;
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + line > el.scrollTop + el.clientHeight - line) el.scrollTop = top + 2 * line - el.clientHeight;
  }, [selected]);
  const [first, last] = [Math.min(range[0], count), Math.min(range[1], count)];
  const lines = [];
  for (let i = first; i < last; i++) lines.push(children(i));
  return (
    <div class="list">
      <div class="scroll" ref={box} onScroll={measure} role="table" aria-label={label} aria-rowcount={count + 1}>
        <div class="head" role="rowgroup">{head}</div>
        <div role="rowgroup" class="body">
          <div class="pad" style={{ height: first * line + "px" }} />
          {lines}
          <div class="pad" style={{ height: (count - last) * line + "px" }} />
        </div>
      </div>
    </div>
  );
}

// useNarrow reports whether the window is as narrow as that of a phone.
export function useNarrow(): boolean {
  const query = "(max-width: 760px)";
  const [narrow, set] = useState(matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listener = () => set(media.matches);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, []);
  return narrow;
}

// typing reports whether a key is meant for a field or a dialog.
export function typing(e: KeyboardEvent): boolean {
  const el = e.target as HTMLElement;
  return el.closest("input, select, textarea, dialog[open]") !== null || e.ctrlKey || e.metaKey || e.altKey;
}
