// The catalogue: find, look at, add, edit, delete.
import {useState} from 'preact/hooks';
import {ApiError, get, id, put, remove, type ItemPage as PageOfItems, type Session, type StoredItem} from './api';
import {count, number, signed} from './format';
import {Card, Empty, Failure, Group, ItemLink, Scroll, short, Tile, useLoad} from './ui';

const kPage = 25;
const mayEdit = (session: Session) => session.role === 'admin' || session.role === 'items';

// The features of an item as a request has them.
export function featuresOf(item: StoredItem): unknown {
  if (!item.named || item.named.length === 0) return item.features;
  const object: Record<string, unknown> = {};
  for (const {name, value} of item.named) {
    const equals = name.indexOf('=');
    const key = name.slice(0, equals);
    const word = name.slice(equals + 1);
    if (equals <= 0 || value !== 1) object[name] = value;
    else if (!(key in object)) object[key] = word;
    else if (Array.isArray(object[key])) (object[key] as string[]).push(word);
    else if (typeof object[key] === 'string') object[key] = [object[key], word];
    else object[name] = value;
  }
  return object;
}

function Editor(props: {item?: StoredItem; done: (item: string) => void}) {
  const {item} = props;
  const [name, setName] = useState(item?.id ?? '');
  const [features, setFeatures] = useState(JSON.stringify(item ? featuresOf(item) : {genre: 'jazz', energy: 0.4}, null, 2));
  const [tags, setTags] = useState(item ? item.tags.join(', ') : '');
  const [error, setError] = useState<unknown>();
  const save = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      let parsed: unknown;
      try {
        parsed = JSON.parse(features);
      } catch {
        throw new ApiError(0, 'Features: expected JSON, such as {"genre": "jazz", "energy": 0.4}.');
      }
      const words = tags.split(',').map(tag => tag.trim()).filter(tag => tag !== '');
      await put(`/v1/items/${id(name)}`, {features: parsed, tags: words});
      props.done(name);
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <form class="form" onSubmit={save}>
      <label>Id <input value={name} onInput={event => setName(event.currentTarget.value)} required disabled={!!item} autocomplete="off" /></label>
      <label>Features, as JSON <textarea rows={6} spellcheck={false} value={features} onInput={event => setFeatures(event.currentTarget.value)} /></label>
      <label>Tags, separated by commas <input value={tags} onInput={event => setTags(event.currentTarget.value)} autocomplete="off" /></label>
      <div class="row"><button type="submit" class="primary">{item ? 'Save' : 'Add item'}</button></div>
      <Failure error={error} />
    </form>
  );
}

export function Items(props: {query: URLSearchParams; session: Session}) {
  const find = props.query.get('find') ?? '';
  const after = props.query.get('after') ?? '';
  const [text, setText] = useState(find);
  const [adding, setAdding] = useState(false);
  const {value, error, again} = useLoad(`items ${find} ${after}`, () => {
    return get<PageOfItems>(`/v1/items?limit=${kPage}&learned=true&prefix=${id(find)}&after=${id(after)}`);
  });
  const items = value?.items ?? [];
  return (
    <>
      <div class="title"><h1>Items</h1>{mayEdit(props.session) && <button type="button" class="primary" aria-expanded={adding} onClick={() => setAdding(!adding)}>Add an item</button>}</div>
      {adding && <Card title="Add an item"><Editor done={name => {
        setAdding(false);
        again();
        location.hash = `#/items/${id(name)}`;
      }} /></Card>}
      <Card>
        <form class="row" onSubmit={event => {
          event.preventDefault();
          location.hash = text ? `#/items?find=${id(text)}` : '#/items';
        }}>
          <label>Id begins with <input value={text} onInput={event => setText(event.currentTarget.value)} autocomplete="off" type="search" /></label>
          <button type="submit">Find</button>
        </form>
        <Failure error={error} />
        {value && items.length === 0 && (
          <Empty title={find ? 'No item has an id that begins like this.' : 'The catalogue is empty.'} command={find ? undefined : `curl -X PUT ${location.origin}/v1/items/jazz-night -H 'Content-Type: application/json' \\\n  -d '{"features": {"genre": "jazz", "energy": 0.4}, "tags": ["jazz"]}'`} />
        )}
        {items.length > 0 && (
          <Scroll label="Items">
            <table class="catalogue">
              <thead><tr><th>Item</th><th>Tags</th><th class="n">Shown</th><th class="n">Average reward</th><th class="n">Own effect</th></tr></thead>
              <tbody>
                {items.map(item => (
                  <tr key={item.id}>
                    <td><ItemLink item={item.id} /></td>
                    <td>{item.tags.slice(0, 6).map(tag => <span class="tag" dir="auto" key={tag}>{short(tag)}</span>)}</td>
                    <td class="n">{item.learned ? count(item.learned.shown) : '–'}</td>
                    <td class="n">{item.learned && item.learned.shown > 0 ? number(item.learned.reward / item.learned.shown) : '–'}</td>
                    <td class="n">{item.learned ? signed(item.learned.effect) : '–'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
        <nav class="pager" aria-label="More items">
          {after && <a href={find ? `#/items?find=${id(find)}` : '#/items'}>First page</a>}
          {value?.next && <a href={`#/items?${find ? `find=${id(find)}&` : ''}after=${id(value.next)}`}>Next page</a>}
        </nav>
      </Card>
    </>
  );
}

export function ItemPage(props: {id: string; session: Session}) {
  const {value: item, error, again} = useLoad(`item ${props.id}`, () => get<StoredItem>(`/v1/items/${id(props.id)}`), 5000);
  const [editing, setEditing] = useState(false);
  const [asking, setAsking] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const title = <div class="title"><h1 class="id" dir="auto">{short(props.id)}</h1><p class="muted"><a href="#/items">All items</a></p></div>;
  if (!item) return <>{title}{error?.status === 404 ? <Card><Empty title="This item is not in the catalogue." /></Card> : <Failure error={error} />}</>;
  const learned = item.learned;
  return (
    <>
      {title}
      <dl class="tiles">
        <Tile label="Shown" value={learned ? count(learned.shown) : '–'} note="decisions with a reward" />
        <Tile label="Reward" value={learned && learned.shown > 0 ? number(learned.reward / learned.shown) : '–'} note="on average" />
        <Tile label="Own effect" value={learned ? `${signed(learned.effect)} ± ${learned.width.toFixed(3)}` : '–'} note="beyond its features" />
      </dl>
      <div class="columns">
        <div>
          <Card title="Features and tags" aside={mayEdit(props.session) && <button type="button" aria-expanded={editing} onClick={() => setEditing(!editing)}>Edit</button>}>
            {editing ? <Editor item={item} done={() => {
              setEditing(false);
              again();
            }} /> : (
              <div class="pad">
                <pre tabIndex={0} aria-label="Features">{JSON.stringify(featuresOf(item), null, 2)}</pre>
                <p>{item.tags.length === 0 ? <span class="muted">No tags.</span> : item.tags.map(tag => <span class="tag" dir="auto" key={tag}>{short(tag)}</span>)}</p>
              </div>
            )}
          </Card>
          {mayEdit(props.session) && (
            <Card title="Delete"><div class="pad">
              {!asking ? <button type="button" class="danger" onClick={() => setAsking(true)}>Delete this item …</button> : (
                <p class="confirm" role="alertdialog" aria-label="Confirm deleting">Delete <b dir="auto">{short(item.id)}</b> and what was learned about it?{' '}
                  <button type="button" class="danger" onClick={() => remove(`/v1/items/${id(item.id)}`).then(() => (location.hash = '#/items'), setFailure)}>Yes, delete</button>{' '}
                  <button type="button" onClick={() => setAsking(false)}>No</button>
                </p>
              )}
              <Failure error={failure} />
            </div></Card>
          )}
        </div>
        <Card title="By group">
          {!learned || learned.groups.length === 0 ? <p class="muted pad">Not shown yet.</p> : (
            <Scroll label="By group">
              <table>
                <thead><tr><th>Group</th><th class="n">Users who saw it</th><th class="n">Effect</th><th class="n">± uncertainty</th></tr></thead>
                <tbody>{learned.groups.slice().sort((a, b) => b.users - a.users).map(group => <tr key={String(group.modelId)}><td><Group model={group.modelId} /></td><td class="n">{count(group.users)}</td><td class="n">{signed(group.effect)}</td><td class="n">{group.width.toFixed(3)}</td></tr>)}</tbody>
              </table>
            </Scroll>
          )}
        </Card>
      </div>
    </>
  );
}
