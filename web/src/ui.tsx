// Small parts that every page uses. All text goes through Preact, which makes text nodes of it.
import type {ComponentChildren} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {ApiError, get, type Model, type Models} from './api';
import {fullTime, groupColour, groupName} from './format';

export function Card(props: {title?: string; aside?: ComponentChildren; children: ComponentChildren; class?: string}) {
  return (
    <section class={'card ' + (props.class ?? '')}>
      {props.title && (
        <header>
          <h2>{props.title}</h2>
          {props.aside && <div class="aside">{props.aside}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

export function Tile(props: {label: string; value: ComponentChildren; note?: ComponentChildren}) {
  return (
    <div class="tile">
      <dt>{props.label}</dt>
      <dd>{props.value}</dd>
      {props.note && <dd class="note">{props.note}</dd>}
    </div>
  );
}

// Tags that the best items of a group have more often than all items have, the most telling first.
export function telling(model: Model): {tag: string; weight: number}[] {
  return model.topTags.filter(tag => tag.lift > 1.05).map(({tag, lift, count}) => ({tag, weight: lift * Math.sqrt(count)}))
    .sort((a, b) => b.weight - a.weight);
}

// Two words for each group, since a number tells nobody what its users like.
export function useGroupWords(): Map<number, string> {
  const {value} = useLoad('words', () => get<Models>('/v1/models?top=40'), 30000);
  return new Map((value?.models ?? []).map(model => [model.modelId, telling(model).slice(0, 2).map(each => short(each.tag, 20)).join(', ')]));
}

export function Group(props: {model: number | null | undefined; words?: Map<number, string>}) {
  const {model} = props;
  const words = model === null || model === undefined ? undefined : props.words?.get(model);
  const swatch = <i class="swatch" style={{background: groupColour(model)}} />;
  if (model === null || model === undefined) return <span class="group">{swatch}no group</span>;
  return <a class="group" href={`#/groups/${model}`}>{swatch}{groupName(model)}{words && <span class="muted" dir="auto"> {words}</span>}</a>;
}

export function UserLink(props: {user: string}) {
  return <a class="id" dir="auto" href={`#/users/${encodeURIComponent(props.user)}`}>{short(props.user)}</a>;
}

export function ItemLink(props: {item: string}) {
  return <a class="id" dir="auto" href={`#/items/${encodeURIComponent(props.item)}`}>{short(props.item)}</a>;
}

// What is very long is shown in part; the whole is in the title of its page.
export const short = (text: string, most = 80) => (text.length > most ? text.slice(0, most) + ' …' : text);

export function Ago(props: {time: string; now?: string}) {
  const now = props.now ? Date.parse(props.now) : Date.now();
  const s = Math.max(0, Math.round((now - Date.parse(props.time)) / 1000));
  const text = s < 60 ? `${s} s ago` : s < 3600 ? `${Math.floor(s / 60)} min ago`
    : s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
  return <time dateTime={props.time} title={fullTime(props.time)}>{text}</time>;
}

export function Empty(props: {title: string; children?: ComponentChildren; command?: string}) {
  return (
    <div class="empty">
      <p class="lead">{props.title}</p>
      {props.children}
      {props.command && <Code text={props.command} label="Command" />}
    </div>
  );
}

export function Failure(props: {error: unknown}) {
  const {error} = props;
  if (!error) return null;
  return <p class="failure" role="alert">{error instanceof Error ? error.message : String(error)}</p>;
}

export function Code(props: {text: string; label: string}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
    } catch {
      // Without HTTPS there is no clipboard: the text can be selected.
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={props.label}>{props.text}</pre>
      <button type="button" class="copy" onClick={copy}>{copied ? 'Copied' : 'Copy'}</button>
    </div>
  );
}

// A bar from 0, to the left or to the right.
export function Bar(props: {value: number; most: number; colour?: string}) {
  const width = props.most > 0 ? Math.min(100, (100 * Math.abs(props.value)) / props.most) : 0;
  return (
    <span class="bar">
      <i class={props.value < 0 ? 'minus' : ''} style={{width: `${width}%`, ...(props.colour ? {background: props.colour} : {})}} />
    </span>
  );
}

export function Scroll(props: {label: string; children: ComponentChildren}) {
  return <div class="scroll" role="region" aria-label={props.label} tabIndex={0}>{props.children}</div>;
}

// The result of `load`, again whenever `key` changes, and every `every` milliseconds if given.
export function useLoad<T>(key: string, load: () => Promise<T>, every = 0) {
  const [state, setState] = useState<{key: string; value?: T; error?: ApiError}>({key});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let alive = true;
    let timer = 0;
    const run = async () => {
      try {
        const value = await load();
        if (alive) setState({key, value});
      } catch (error) {
        if (alive) setState(before => ({key, value: before.key === key ? before.value : undefined, error: error as ApiError}));
      }
      if (alive && every > 0) timer = window.setTimeout(run, every);
    };
    void run();
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, [key, turn]);
  const fresh = state.key === key;
  return {
    value: fresh ? state.value : undefined,
    error: fresh ? state.error : undefined,
    again: () => setTurn(turn + 1),
  };
}
