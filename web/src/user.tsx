// One user's life: which groups, when they changed and why, what they would be shown now.
import {useState} from 'preact/hooks';
import {ApiError, get, id, post, remove, type RankReply, type Session, type User} from './api';
import {useWidth} from './charts';
import {count, fullTime, groupColour, groupName, many, number, percent, signed, tickFormat} from './format';
import {useLive} from './live';
import {Changes} from './overview';
import {Ago, Bar, Card, Empty, Failure, Group, ItemLink, Scroll, short, Tile, useGroupWords, useLoad} from './ui';

// Where a change has led in the end: the first rewards after it may have moved the user on.
function settledIn(user: User, change: User['changes'][number]): number | null {
  const next = user.changes[user.changes.indexOf(change) + 1];
  return next ? next.fromModelId : user.modelId;
}

// The evidence of a change: less reward than before, or as much for other choices.
function why({rewards, got, before}: {rewards: number; got: number; before: number}): string {
  const last = `Average reward of the last ${rewards} choices: ${number(got, 2)}, before: ${number(before, 2)}.`;
  return got < before ? last : `${last} Not less, but for other choices than expected.`;
}

// The groups of a user as coloured bands, changes between them, the last rewards as ticks.
function LifeLine(props: {user: User; now: number}) {
  const {user, now} = props;
  const width = 1000;
  const start = Date.parse(user.firstSeen);
  const bands: {from: number; to: number; model: number | null}[] = [];
  let from = start;
  for (const change of user.changes) {
    const to = Date.parse(change.time);
    bands.push({from, to, model: change.fromModelId});
    from = to;
  }
  bands.push({from, to: now, model: user.modelId});
  const x = (time: number) => (width * (Math.min(now, Math.max(start, time)) - start)) / Math.max(1, now - start);
  const summary = `${short(user.userId)}: ${bands.map(band => groupName(band.model)).join(', then ')}`;
  const most = Math.max(1e-9, ...user.lastRewards.map(each => Math.abs(each.reward)));
  return (
    <figure class="life">
      <svg viewBox={`0 0 ${width} 90`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {bands.map((band, i) => (
          <rect key={i} x={x(band.from)} y={6} width={Math.max(1, x(band.to) - x(band.from))} height={58} fill={groupColour(band.model)}>
            <title>{`${groupName(band.model)}, from ${fullTime(band.from)}`}</title>
          </rect>
        ))}
        {user.lastRewards.map((each, i) => <line key={i} x1={x(Date.parse(each.time))} x2={x(Date.parse(each.time))} y1={90} y2={90 - Math.max(2, (20 * Math.abs(each.reward)) / most)} class="reward" vector-effect="non-scaling-stroke"><title>{`${fullTime(each.time)}: ${number(each.reward, 2)}`}</title></line>)}
        {user.changes.map(change => <line key={change.time} x1={x(Date.parse(change.time))} x2={x(Date.parse(change.time))} y1={0} y2={70} class="moment" vector-effect="non-scaling-stroke" />)}
      </svg>
      <figcaption><span>{tickFormat(1, (now - start) / 1000).format(start)}</span><span>now</span></figcaption>
    </figure>
  );
}

// The last rewards: what came, beside what was expected.
function Ticks(props: {user: User}) {
  const {box, width} = useWidth();
  const ticks = props.user.lastRewards;
  const ends = ticks.flatMap(tick => [tick.reward, tick.expected]);
  const low = Math.min(0, ...ends);
  const high = Math.max(low + 1e-9, 0, ...ends);
  const height = 150;
  const left = 40;
  const step = (width - left) / Math.max(12, ticks.length);
  const y = (value: number) => height - 12 - ((height - 22) * (value - low)) / (high - low);
  const room = 14; // of a number; one next to 0 would be on top of it
  const marks = [...new Set([low, 0, high])].filter(mark => mark === 0 || Math.abs(y(mark) - y(0)) > room);
  return (
    <figure class="chart">
      <div ref={box} class="plot">
        {ticks.length === 0 && <p class="muted">No rewards yet.</p>}
        {width > 0 && ticks.length > 0 && (
          <svg width={width} height={height} role="img" aria-label={`The last ${ticks.length} rewards: ${ticks.map(tick => number(tick.reward, 2)).join(', ')}`}>
            <line x1={left} x2={width} y1={y(0)} y2={y(0)} class="axis" />
            {marks.map(mark => <text key={mark} x={left - 8} y={y(mark) + 4} class="tick" text-anchor="end">{number(mark, Number.isInteger(mark) ? 0 : 2)}</text>)}
            {ticks.map((tick, i) => {
              const x = left + i * step;
              return (
                <g key={i}>
                  <rect x={x + step * 0.2} width={step * 0.6} y={y(Math.max(0, tick.reward)) - 1} height={Math.abs(y(tick.reward) - y(0)) + 2} class="column"><title>{`${fullTime(tick.time)}: ${number(tick.reward, 2)}, expected ${number(tick.expected, 2)}`}</title></rect>
                  <line x1={x + step * 0.05} x2={x + step * 0.95} y1={y(tick.expected)} y2={y(tick.expected)} class="expected" />
                </g>
              );
            })}
          </svg>
        )}
      </div>
      <figcaption><span class="key"><i class="block" /> reward</span><span class="key"><i class="dash" style={{borderColor: 'var(--baseline)'}} /> expected</span></figcaption>
    </figure>
  );
}

export function Explanation(props: {reply: RankReply}) {
  const {reply} = props;
  const why = reply.explanation;
  if (!why) return null;
  const parts = why.contributions.filter(part => Math.abs(part.value) > 1e-9).slice(0, 10);
  if (Math.abs(why.item) > 1e-9) parts.push({feature: 'this item itself', value: why.item});
  if (Math.abs(why.intercept) > 1e-9) parts.push({feature: 'any item (intercept)', value: why.intercept});
  const most = Math.max(0, ...parts.map(part => Math.abs(part.value)));
  return (
    <>
      <h3>Why <ItemLink item={reply.rewardActionId} /></h3>
      <ol class="plain wide-names">
        {parts.map(part => <li key={part.feature}><span class="id" dir="auto">{short(part.feature)}</span><Bar value={part.value} most={most} /><span class="n">{signed(part.value)}</span></li>)}
      </ol>
      <p class="hint">Model: <Group model={reply.modelId} />, learned from {many(why.groupObservations, 'reward')} of {many(why.groupUsers, 'user')}.</p>
    </>
  );
}

export function Ranking(props: {reply: RankReply}) {
  const most = Math.max(...props.reply.ranking.map(row => row.probability));
  return (
    <Scroll label="Ranking">
      <table>
        <thead><tr><th>Item</th><th>Probability</th><th class="n">Expected reward</th><th class="n">± uncertainty</th></tr></thead>
        <tbody>
          {props.reply.ranking.map(row => (
            <tr key={row.id} class={row.id === props.reply.rewardActionId ? 'chosen' : ''}>
              <td><ItemLink item={row.id} />{row.id === props.reply.rewardActionId && <span class="tag">shown</span>}</td>
              <td class="share"><Bar value={row.probability} most={most} /> {percent(row.probability)}</td>
              <td class="n">{number(row.mean)}</td>
              <td class="n">{number(row.width)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

// Asked for as a decision that is not shown: nothing is learned from it.
function NowShown(props: {user: string}) {
  const {value, error, again} = useLoad(`now ${props.user}`, () =>
    post<RankReply>('/v1/rank?explain=true', {userId: props.user, topK: 5, deferActivation: true}));
  return (
    <Card title="What they would be shown now" aside={<button type="button" onClick={again}>Ask again</button>}>
      {error && (error.status === 403 ? <p class="muted pad">A key with the role admin or rank may ask for a ranking.</p> : <Failure error={error} />)}
      {value && <div class="columns"><Ranking reply={value} /><div class="pad"><Explanation reply={value} /></div></div>}
    </Card>
  );
}

function Erase(props: {user: string; done: () => void}) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>();
  const erase = async () => {
    try {
      await remove(`/v1/users/${id(props.user)}`);
      props.done();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Card title="Erase">
      <div class="pad">
        <p>The user’s records are removed from disk, and what was learned from them is subtracted from the models, exactly. This cannot be undone.</p>
        {!asking ? <button type="button" class="danger" onClick={() => setAsking(true)}>Erase this user …</button> : (
          <p class="confirm" role="alertdialog" aria-label="Confirm erasing">
            Erase <b dir="auto">{short(props.user)}</b>?{' '}
            <button type="button" class="danger" onClick={erase}>Yes, erase</button>{' '}
            <button type="button" onClick={() => setAsking(false)}>No</button>
          </p>
        )}
        <Failure error={error} />
      </div>
    </Card>
  );
}

export function UserPage(props: {id: string; session: Session}) {
  const live = useLive();
  const words = useGroupWords();
  const [erased, setErased] = useState('');
  const {value: user, error} = useLoad(`user ${props.id}`, () => get<User>(`/v1/users/${id(props.id)}`), 2000);
  const title = <div class="title"><h1 class="id" dir="auto">{short(props.id)}</h1><p class="muted"><a href={`#/try?user=${id(props.id)}`}>Try a request</a> · <a href="#/users">Another user</a></p></div>;
  if (erased === props.id) return <>{title}<Card><Empty title="Erased. No model contains anything of this user; files are rewritten within a minute." /></Card></>;
  if (!user) {
    if (error instanceof ApiError && error.status === 404) {
      return <>{title}<Card><Empty title="This user is not known yet: no reward of theirs has been learned." command={`curl ${location.origin}/v1/rank -H 'Content-Type: application/json' -d '${JSON.stringify({userId: short(props.id)})}'`} /></Card></>;
    }
    return <>{title}<Failure error={error} /></>;
  }
  const now = live ? Date.parse(live.time) : Date.now();
  return (
    <>
      {title}
      <dl class="tiles">
        <Tile label="Group" value={<Group model={user.modelId} />} note={`${words.get(user.modelId ?? -1) ?? ''} (probability ${percent(user.modelChance, 0)})`.trim()} />
        <Tile label="Since" value={<Ago time={user.since} />} note={user.changes.length === 0 ? 'their first reward' : 'their last change'} />
        <Tile label="Rewards" value={count(user.observations)} note={`${count(user.periodObservations)} since the last change`} />
        <Tile label="Changes" value={count(user.changes.length)} />
      </dl>
      <Card title="Groups over time"><LifeLine user={user} now={now} /></Card>
      <div class="columns">
        <Card title="Changes, and why">
          {user.changes.length === 0 ? <p class="muted pad">None since their first reward.</p> : (
            <ul class="timeline">
              {user.changes.slice().reverse().slice(0, 12).map(change => (
                <li key={change.time}>
                  <Ago time={change.time} />: <Group model={change.fromModelId} words={words} /> {settledIn(user, change) === change.fromModelId ? '→ the same group again' : <>→ <Group model={settledIn(user, change)} words={words} /></>}
                  {change.evidence && <p class="hint">{why(change.evidence)}</p>}
                </li>
              ))}
            </ul>
          )}
        </Card>
        <div>
          <Card title="Last rewards"><Ticks user={user} /></Card>
          <NowShown user={props.id} />
        </div>
      </div>
      {props.session.role === 'admin' && <Erase user={props.id} done={() => setErased(props.id)} />}
    </>
  );
}

export function Users() {
  const live = useLive();
  const [text, setText] = useState('');
  return (
    <>
      <div class="title"><h1>Users</h1><p class="muted">{live ? `${count(live.stats.users)} known` : ''}</p></div>
      <Card>
        <form class="row" onSubmit={event => {
          event.preventDefault();
          if (text) location.hash = `#/users/${id(text)}`;
        }}>
          <label>User id <input value={text} onInput={event => setText(event.currentTarget.value)} autocomplete="off" required /></label>
          <button type="submit" class="primary">Open</button>
        </form>
      </Card>
      <Card title="Latest changes">{live && <Changes live={live} most={30} />}</Card>
    </>
  );
}
