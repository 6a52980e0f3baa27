// The shell: who may look, where they are, and the page of that place.
import {render} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {get, post, remove, setCsrf, type Session} from './api';
import {Evaluate} from './evaluate';
import {GroupPage, Groups} from './groups';
import {ItemPage, Items} from './items';
import {startLive, stopLive, useLive, useLiveBegun} from './live';
import {Overview} from './overview';
import {Settings} from './settings';
import {TryIt} from './tryit';
import {Card, Empty, Failure} from './ui';
import {UserPage, Users} from './user';

const kPages = [
  ['', 'Overview'], ['groups', 'Groups'], ['users', 'Users'], ['items', 'Items'], ['try', 'Try it'],
  ['evaluate', 'Evaluate'], ['settings', 'Settings and API'],
] as const;

interface Place {
  page: string;
  id: string;
  query: URLSearchParams;
}

// "#/users/ada?x=1": every view has an address.
function readPlace(): Place {
  const hash = location.hash.replace(/^#\/?/, '');
  const mark = hash.indexOf('?');
  const path = mark < 0 ? hash : hash.slice(0, mark);
  const slash = path.indexOf('/');
  let id = slash < 0 ? '' : path.slice(slash + 1);
  try {
    id = decodeURIComponent(id);
  } catch {
    // As it is.
  }
  return {page: slash < 0 ? path : path.slice(0, slash), id, query: new URLSearchParams(mark < 0 ? '' : hash.slice(mark + 1))};
}

type Theme = 'auto' | 'light' | 'dark';
function readTheme(): Theme {
  try {
    const stored = localStorage.getItem('codband-theme');
    return stored === 'light' || stored === 'dark' ? stored : 'auto';
  } catch {
    return 'auto';
  }
}
function setTheme(theme: Theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('codband-theme', theme);
  } catch {
    // Then for this visit only.
  }
  dispatchEvent(new Event('codband-theme'));
}

function ThemeButton() {
  const [theme, choose] = useState<Theme>(readTheme());
  const next: Theme = theme === 'auto' ? 'light' : theme === 'light' ? 'dark' : 'auto';
  return (
    <button type="button" class="quiet" title={`Colours: ${theme}`} aria-label={`Colours: ${theme}. Change to ${next}`} onClick={() => {
      setTheme(next);
      choose(next);
    }}>{theme === 'auto' ? '◐' : theme === 'light' ? '☀' : '☾'}</button>
  );
}

function Login(props: {done: (session: Session) => void}) {
  const [key, setKey] = useState('');
  const [error, setError] = useState<unknown>();
  const login = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      props.done(await post<Session>('/v1/session', {key}));
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <main class="login">
      <Card>
        <form class="form" onSubmit={login}>
          <h1>codband</h1>
          <p>Log in with a key of this server. The role <code>read</code> may look, <code>admin</code> may also make changes.</p>
          <label>Key <input type="password" value={key} onInput={event => setKey(event.currentTarget.value)} autocomplete="current-password" required autofocus /></label>
          <div class="row"><button type="submit" class="primary">Log in</button></div>
          <Failure error={error} />
          <p class="hint">Keys are made by <code>codband keys add NAME --role read --file keys.txt</code>.</p>
        </form>
      </Card>
    </main>
  );
}

function Page(props: {place: Place; session: Session}) {
  const {place, session} = props;
  useLiveBegun();
  switch (place.page) {
    case '': return <Overview query={place.query} />;
    case 'groups': return place.id ? <GroupPage key={place.id} id={place.id} /> : <Groups />;
    case 'users': return place.id ? <UserPage key={place.id} id={place.id} session={session} /> : <Users />;
    case 'items': return place.id ? <ItemPage key={place.id} id={place.id} session={session} /> : <Items key={place.query.toString()} query={place.query} session={session} />;
    case 'try': return <TryIt key={place.query.toString()} query={place.query} session={session} />;
    case 'evaluate': return <Evaluate />;
    case 'settings': return <Settings query={place.query} session={session} />;
    default: return <Card><Empty title="There is no such page."><p><a href="#/">Overview</a></p></Empty></Card>;
  }
}

// Says when the server stops telling news.
function Connection() {
  const live = useLive();
  const [stale, setStale] = useState(false);
  useEffect(() => {
    setStale(false);
    const timer = setTimeout(() => setStale(true), 6000);
    return () => clearTimeout(timer);
  }, [live]);
  return stale ? <p class="failure" role="status">No update from the server for some seconds. Trying again.</p> : null;
}

function App() {
  const [session, setSession] = useState<Session>();
  const [error, setError] = useState<unknown>();
  const [place, setPlace] = useState(readPlace());
  const enter = (found: Session) => {
    setCsrf(found.csrfToken);
    setSession(found);
    if (found.role === 'read' || found.role === 'admin') startLive();
  };
  useEffect(() => {
    get<Session>('/v1/session').then(enter, setError);
    const move = () => {
      setPlace(readPlace());
      scrollTo(0, 0);
    };
    addEventListener('hashchange', move);
    return () => removeEventListener('hashchange', move);
  }, []);
  const name = kPages.find(page => page[0] === place.page)?.[1] ?? 'codband';
  useEffect(() => {
    document.title = (place.id ? `${place.id.slice(0, 60)} – ` : '') + `${name} – codband`;
    // On a phone the names of pages scroll.
    const here = document.querySelector('.top nav [aria-current]');
    here?.parentElement?.scrollTo({left: (here as HTMLElement).offsetLeft - 60});
  }, [place.page, place.id, session]);
  if (error) return <main><Failure error={error} /></main>;
  if (!session) return <p class="loading">Loading …</p>;
  if (session.role === null) return <Login done={enter} />;
  const logout = async () => {
    await remove('/v1/session');
    stopLive();
    location.reload();
  };
  return (
    <>
      <a class="skip" href="#content" onClick={event => {
        event.preventDefault();
        document.getElementById('content')!.focus();
      }}>Skip to content</a>
      <header class="top">
        <a class="brand" href="#/"><img src="/icon.svg" alt="" width={24} height={24} />codband</a>
        <nav aria-label="Pages">
          {kPages.map(([path, label]) => <a key={path} href={`#/${path}`} aria-current={path === place.page ? 'page' : undefined}>{label}</a>)}
        </nav>
        <div class="who">
          <ThemeButton />
          {session.keyRequired && <button type="button" class="quiet" onClick={logout}>Log out {session.name}</button>}
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {session.role === 'rank' || session.role === 'items'
          ? <Card><Empty title={`This key has the role ${session.role}, which cannot see the dashboard. Log in with a key of the role read or admin.`} /></Card>
          : <><Connection /><Page place={place} session={session} /></>}
      </main>
    </>
  );
}

setTheme(readTheme());
render(<App />, document.getElementById('app')!);
