// Who likes what, and who comes and goes.
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import cloud from 'd3-cloud';
import {get, type Change, type Changes, type FeatureReport, type Model, type Models, type ModelWithParameter, type Stats} from './api';
import {Bars, Stream} from './charts';
import {count, groupColour, groupName, many, number, percent, signed} from './format';
import {useLive} from './live';
import {groupSizes} from './series';
import {Bar, Card, Empty, Failure, Group, ItemLink, Scroll, short, telling, Tile, useLoad} from './ui';

interface Placed {
  text: string;
  size: number;
  x: number;
  y: number;
}

const kMostZoom = 1.6;

// The words that the best items of a group have more often than all items have.
function Cloud(props: {model: Model; height?: number}) {
  const {model} = props;
  const box = useRef<HTMLDivElement>(null);
  const [words, setWords] = useState<Placed[]>([]);
  const [width, setWidth] = useState(0);
  const drawn = useRef<SVGGElement>(null);
  const [view, setView] = useState('0 0 1 1');
  const height = props.height ?? 150;
  const lifted = telling(model).slice(0, 24);
  const key = lifted.map(({tag, weight}) => `${tag}:${weight.toFixed(2)}`).join(' ');
  useEffect(() => {
    const wide = Math.floor(box.current!.getBoundingClientRect().width);
    setWidth(wide);
    if (lifted.length === 0) return;
    const most = lifted[0].weight;
    let seed = 7;
    const layout = cloud()
      .size([wide, height])
      .words(lifted.map(({tag, weight}) => ({text: short(tag), size: 13 + Math.min(30, wide / 14) * weight / most})))
      .padding(3)
      .rotate(0)
      .font('system-ui, sans-serif')
      .fontWeight(600)
      .fontSize(word => word.size!)
      .random(() => (seed = (seed * 16807) % 2147483647) / 2147483647)
      .on('end', placed => setWords(placed as Placed[]));
    layout.start();
    return () => {
      layout.stop();
    };
  }, [key]);
  // The layout begins anywhere and leaves room: the view is what was drawn, larger if there is room.
  useLayoutEffect(() => {
    if (!drawn.current || words.length === 0) return;
    const found = drawn.current.getBBox();
    const w = Math.max(found.width, width / kMostZoom);
    const h = Math.max(found.height, height / kMostZoom);
    setView(`${found.x + (found.width - w) / 2} ${found.y + (found.height - h) / 2} ${w} ${h}`);
  }, [words]);
  if (lifted.length === 0) return <div class="cloud"><div ref={box}><p class="muted">No tag stands out.</p></div></div>;
  return (
    <div class="cloud"><div ref={box}>
      <svg width={width} height={height} viewBox={view} role="img" aria-label={`Words of ${groupName(model.modelId)}: ${lifted.map(tag => tag.tag).join(', ')}`}>
        <g ref={drawn}>
          {words.map(word => (
            <text key={word.text} x={word.x} y={word.y} text-anchor="middle" class="word" style={{fontSize: `${word.size}px`, fill: `color-mix(in srgb, ${groupColour(model.modelId)} 55%, var(--fg))`}}>{word.text}</text>
          ))}
        </g>
      </svg>
    </div></div>
  );
}

function ItemList(props: {title: string; items: {id: string; mean: number}[]; most: number}) {
  return (
    <div>
      <h3>{props.title}</h3>
      <ol class="plain">
        {props.items.map(item => (
          <li key={item.id}><ItemLink item={item.id} /><Bar value={item.mean} most={props.most} /><span class="n">{number(item.mean, 2)}</span></li>
        ))}
      </ol>
    </div>
  );
}

export function Groups() {
  const {value, error} = useLoad('models', () => get<Models>('/v1/models?top=40'), 5000);
  const series = useLoad('sizes', () => get<Stats>('/v1/stats?step=60'), 30000);
  if (!value) return <Failure error={error} />;
  const models = value.models.filter(model => model.users > 0 || model.periods > 0);
  const points = series.value?.points ?? [];
  return (
    <>
      <div class="title"><h1>Groups</h1><p class="muted">Users with the same taste share a model. {many(models.length, 'group')} now.</p></div>
      {models.length === 0 && (
        <Card><Empty title="No groups yet: the first rewards make them." command={`curl ${location.origin}/v1/rank -H 'Content-Type: application/json' -d '{"userId": "ada"}'`} /></Card>
      )}
      {points.length > 0 && models.length > 0 && (
        <Card title="Size over time"><Stream times={points.map(point => Date.parse(point.time) / 1000)} groups={groupSizes(points)} summary="Users of each group in the last hour" /></Card>
      )}
      <div class="grid">
        {models.slice(0, 24).map(model => (
          <Card key={model.modelId} class="group-card">
            <header><h2><Group model={model.modelId} /></h2><div class="aside">{many(model.users, 'user')} · {percent(model.popularity, 0)}</div></header>
            <Cloud model={model} />
            <p class="muted">Best: {model.topItems.slice(0, 3).map((item, i) => <span key={item.id}>{i > 0 && ', '}<ItemLink item={item.id} /></span>)}</p>
          </Card>
        ))}
      </div>
    </>
  );
}

// What matters to a group: parameters, by how much the feature can add.
function Matters(props: {model: ModelWithParameter; columns: FeatureReport['columns']}) {
  const {model, columns} = props;
  const rows = (model.parameter ?? []).map((weight, i) => {
    const column = columns[i];
    const size = column ? Math.max(Math.abs(column.min), Math.abs(column.max)) : 1;
    return {name: column?.name ?? `feature ${i}`, value: weight * size, used: !column || column.count > 0};
  }).filter(row => row.used && Math.abs(row.value) > 1e-6).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 14);
  const most = Math.max(0, ...rows.map(row => Math.abs(row.value)));
  if (rows.length === 0) return <p class="muted pad">Nothing learned yet.</p>;
  return (
    <ol class="plain wide-names">
      {rows.map(row => <li key={row.name}><span class="id" dir="auto">{short(row.name)}</span><Bar value={row.value} most={most} /><span class="n">{signed(row.value, 2)}</span></li>)}
    </ol>
  );
}

function Flows(props: {model: number; changes: Change[]}) {
  const counted = (pick: (change: Change) => number | null | undefined, own: (change: Change) => boolean) => {
    const counts = new Map<number, number>();
    for (const change of props.changes) {
      const other = pick(change);
      if (own(change) && other !== null && other !== undefined && change.fromModelId !== change.toModelId) counts.set(other, (counts.get(other) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6);
  };
  const came = counted(change => change.fromModelId, change => change.toModelId === props.model);
  const went = counted(change => change.toModelId, change => change.fromModelId === props.model);
  const most = Math.max(1, ...came.map(each => each[1]), ...went.map(each => each[1]));
  const list = (title: string, flows: [number, number][]) => (
    <div>
      <h3>{title}</h3>
      {flows.length === 0 ? <p class="muted">nobody recently</p> : (
        <ol class="plain">{flows.map(([model, users]) => <li key={model}><Group model={model} /><Bar value={users} most={most} colour={groupColour(model)} /><span class="n">{users}</span></li>)}</ol>
      )}
    </div>
  );
  return <div class="columns">{list('Came from', came)}{list('Left for', went)}</div>;
}

export function GroupPage(props: {id: string}) {
  const live = useLive();
  const {value: model, error} = useLoad(`model ${props.id}`, () => get<ModelWithParameter>(`/v1/models/${encodeURIComponent(props.id)}?top=40`), 5000);
  const features = useLoad('features', () => get<FeatureReport>('/v1/features'));
  const changes = useLoad(`flows ${props.id}`, () => get<Changes>('/v1/changes?limit=200'), 5000);
  const series = useLoad('sizes', () => get<Stats>('/v1/stats?step=60'), 30000);
  if (error && error.status === 404) return <><div class="title"><h1>{groupName(Number(props.id))}</h1></div><Card><Empty title="This group no longer exists: all of its users have moved to other groups." /></Card></>;
  if (!model) return <Failure error={error} />;
  const points = series.value?.points ?? [];
  const best = model.topItems.slice(0, 8);
  const worst = model.bottomItems.slice(0, 8);
  const most = Math.max(0, ...best.map(item => Math.abs(item.mean)), ...worst.map(item => Math.abs(item.mean)));
  const sizes = points.map(point => point.groups.find(group => group.modelId === model.modelId)?.users ?? 0);
  return (
    <>
      <div class="title"><h1><i class="swatch big" style={{background: groupColour(model.modelId)}} />{groupName(model.modelId)}</h1><p class="muted"><a href="#/groups">All groups</a></p></div>
      <dl class="tiles">
        <Tile label="Users now" value={count(model.users)} note={live && live.stats.users > 0 ? `${percent(model.users / live.stats.users, 0)} of all` : undefined} />
        <Tile label="Popularity" value={percent(model.popularity)} note="of all periods between changes" />
        <Tile label="Learned from" value={count(model.observations)} note="rewards" />
      </dl>
      <div class="columns">
        <div>
          <Card title="What they like more than others"><Cloud model={model} height={180} /><p class="hint">Tags of the group’s best items; the larger, the more frequent compared with all items.</p></Card>
          <Card title="Size over time"><Bars times={points.map(point => Date.parse(point.time) / 1000)} values={sizes} height={150} unit="user" colour={groupColour(model.modelId)} summary={`Users of ${groupName(model.modelId)} over the last hour`} /></Card>
        </div>
        <Card title="Which features matter"><Matters model={model} columns={features.value?.columns ?? []} /><p class="hint">What each feature adds to the expected reward at its largest value.</p></Card>
      </div>
      <Card title="Items, by expected reward"><div class="columns"><ItemList title="Best" items={best} most={most} /><ItemList title="Worst" items={worst} most={most} /></div></Card>
      <Card title="Users who came and left"><Flows model={model.modelId} changes={changes.value?.changes ?? []} /></Card>
      <Scroll label="Group as the API has it"><p class="hint">The same from the API: <a href={`/v1/models/${model.modelId}`}>/v1/models/{model.modelId}</a></p></Scroll>
    </>
  );
}
