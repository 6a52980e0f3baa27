// Is it getting better, who changed, is anything wrong.
import type {ComponentChildren} from 'preact';
import {get, type Live, type Point, type Stats} from './api';
import {Bars, Curves, Stream, type Curve} from './charts';
import {bytes, count, duration, many, number, percent} from './format';
import {seconds, useLive} from './live';
import {differences, estimate, groupSizes, isRange, kRanges, momentsOf, trailing, type Estimate, type Range, type Sum} from './series';
import {Ago, Card, Empty, Failure, Group, Scroll, Tile, useGroupWords, useLoad, UserLink} from './ui';

interface Shown {
  times: number[];
  rewards: Sum[];
  baseline: Sum[];
  uniform: Sum[];
  window: number;  // points that an estimate is made of
}

function fromPoints(points: Point[], step: number): Shown {
  return {
    times: points.map(point => Date.parse(point.time) / 1000),
    rewards: momentsOf(points, 'rewards'),
    baseline: momentsOf(points, 'baseline'),
    uniform: momentsOf(points, 'uniform'),
    window: Math.max(1, Math.round(3600 / step)),
  };
}

function fromSeconds(): Shown {
  const part = (name: 'rewards' | 'baseline' | 'uniform') =>
    differences(seconds.map(second => second.live.sinceStart[name]));
  return {
    times: seconds.map(second => second.time),
    rewards: part('rewards'),
    baseline: part('baseline'),
    uniform: part('uniform'),
    window: 300,
  };
}

const column = (estimates: (Estimate | null)[], end: keyof Estimate) =>
  estimates.map(each => (each === null ? null : each[end]));

function curve(label: string, colour: string, estimates: (Estimate | null)[], dashed: boolean): Curve {
  return {label, colour, dashed, values: column(estimates, 'mean'), low: column(estimates, 'low'), high: column(estimates, 'high')};
}

const total = (moments: Sum[]) => moments.reduce(
  (sum, each) => ({count: sum.count + each.count, sum: sum.sum + each.sum, squares: sum.squares + each.squares}),
  {count: 0, sum: 0, squares: 0});

function verdict(shown: Shown): ComponentChildren {
  const reward = estimate(total(shown.rewards));
  const baseline = estimate(total(shown.baseline));
  const uniform = estimate(total(shown.uniform));
  if (!reward) return 'No rewards in this time yet.';
  const against = (name: string, other: Estimate | null) => {
    if (!other) return null;
    const more = other.mean !== 0 ? (reward.mean - other.mean) / Math.abs(other.mean) : NaN;
    const sure = reward.low > other.high || reward.high < other.low;
    return (
      <span>
        {' '}{name} would have brought about {number(other.mean)}
        {Number.isFinite(more) && <b class={sure ? (more > 0 ? 'good' : 'bad') : ''}> ({more > 0 ? '+' : ''}{percent(more, 0)})</b>}
        {sure ? '.' : ', within the uncertainty.'}
      </span>
    );
  };
  return (
    <>
      Each decision brought <b>{number(reward.mean)}</b> on average.
      {against('The baseline', baseline)}
      {against('A random choice', uniform)}
    </>
  );
}

function RewardCard(props: {shown: Shown; range: Range}) {
  const {shown, range} = props;
  const smooth = range === 'live' ? 10 : 1;
  const reward = trailing(shown.rewards, smooth);
  const baseline = trailing(shown.baseline, shown.window);
  const uniform = trailing(shown.uniform, shown.window);
  const curves = [curve('codband', '--codband', reward, false)];
  if (baseline.some(each => each !== null)) curves.push(curve('baseline', '--baseline', baseline, true));
  if (uniform.some(each => each !== null)) curves.push(curve('random choice', '--uniform', uniform, true));
  return (
    <Card title="Average reward" aside={<Ranges range={range} />} class="wide">
      <p class="verdict">{verdict(shown)}</p>
      <Curves times={shown.times} curves={curves} unit="reward per decision"
        summary={`Average reward over time: codband ${number(reward.at(-1)?.mean)}, baseline estimate ${number(baseline.at(-1)?.mean)}, random choice estimate ${number(uniform.at(-1)?.mean)}`} />
      <p class="hint">
        Bands are 95 % intervals. Baseline (the first action of each request) and random choice are
        estimated from the propensities of the decisions, over the {range === 'live' ? 'minutes' : 'hour'} before each point.
      </p>
    </Card>
  );
}

function Ranges(props: {range: Range}) {
  return (
    <nav class="tabs" aria-label="Time">
      {(Object.keys(kRanges) as Range[]).map(range => (
        <a key={range} href={`#/?range=${range}`} aria-current={range === props.range ? 'true' : undefined}>{kRanges[range].label}</a>
      ))}
    </nav>
  );
}

interface Concern {
  bad: boolean;
  text: string;
  what: string;
  link: string;
  name: string;
}

// What needs attention, with what to do.
function concerns(live: Live, hour: Stats | undefined): Concern[] {
  const {stats} = live;
  const found: Concern[] = [];
  const add = (when: boolean, bad: boolean, text: string, what: string, link: string, name: string) => {
    if (when) found.push({bad, text, what, link, name});
  };
  add(stats.lastError !== '', true, `Not ready: ${stats.lastError}`, 'Changes are refused until it passes; nothing acknowledged is lost.', '#/settings?find=server.data', 'Where the data is');
  add(stats.learnerLag > 1000, true, `Learning is ${count(stats.learnerLag)} rewards behind.`, 'Rewards come faster than they are learned. Fewer features or another policy make learning faster.', '#/settings?find=policy', 'Policy');
  add(stats.sharedColumns > 0, true, `${count(stats.sharingNames)} feature names share columns.`, `All ${count(stats.columnsLimit)} columns are in use: raise features.max_columns.`, '#/settings?find=features.max_columns', 'Setting');
  const late = hour ? hour.total.late : 0;
  const came = hour ? hour.total.rewards.count - hour.total.defaulted : 0;
  add(late > 0 && late > 0.01 * came, false, `${count(late)} rewards came too late in the last hour.`, 'Wait longer for rewards.', '#/settings?find=rewards.wait_seconds', 'Setting');
  const unknown = hour ? hour.total.unknown : 0;
  add(unknown > 0 && unknown > 0.01 * came, false, `${count(unknown)} rewards of the last hour were for unknown events.`, 'Send the eventId of the rank’s reply.', '#/settings?api=reward', 'How to send rewards');
  add(!!hour && hour.total.defaulted > 0.9 * hour.total.rewards.count && hour.total.rewards.count > 100, false, 'Almost no rewards arrive: decisions are learned with the default reward.', 'Check that the application sends rewards.', '#/try', 'Try it');
  add(stats.quarantined > 0, true, `${count(stats.quarantined)} log entries could not be learned.`, "'codband doctor' lists them.", '#/settings?find=policy', 'Policy');
  add(stats.damage > 0, true, `${count(stats.damage)} records on disk are damaged.`, "'codband doctor --repair' says what to do.", '#/settings?find=server.data', 'Where the data is');
  add(live.decisionLogLost > 0, true, `${count(live.decisionLogLost)} decisions are missing from the decision log.`, 'Check the disk that it is on.', '#/settings?find=decision_log', 'Decision log');
  add(live.connections > 0.9 * live.connectionsLimit, true, 'Almost all connections are in use.', 'Raise server.max_connections.', '#/settings?find=max_connections', 'Setting');
  return found;
}

function Attention(props: {live: Live; hour: Stats | undefined}) {
  const list = concerns(props.live, props.hour);
  return (
    <Card title={list.length === 0 ? undefined : 'Needs attention'}>
      {list.length === 0
        ? <p class="calm"><span class="dot" aria-hidden="true" /> Nothing needs attention: data is durable, learning keeps up, rewards arrive.</p>
        : <ul class="concerns">{list.map(each => (
            <li key={each.text} class={each.bad ? 'bad' : ''}><b>{each.text}</b> {each.what} <a href={each.link}>{each.name}</a></li>
          ))}</ul>}
    </Card>
  );
}

export function Changes(props: {live: Live; most: number}) {
  const words = useGroupWords();
  const changes = props.live.changes.slice(0, props.most);
  if (changes.length === 0) {
    return <p class="muted pad">None yet. A change is detected when a user’s rewards no longer fit their group.</p>;
  }
  return (
    <Scroll label="Latest changes">
      <table>
        <thead><tr><th>When</th><th>Who</th><th>From</th><th>To</th><th class="n">Reward before → now</th></tr></thead>
        <tbody>
          {changes.map(change => (
            <tr key={change.time + change.userId}>
              <td class="nowrap"><Ago time={change.time} now={props.live.time} /></td>
              <td><UserLink user={change.userId} /></td>
              <td><Group model={change.fromModelId} words={words} /></td>
              <td><Group model={change.toModelId} words={words} /></td>
              <td class="n nowrap">{change.evidence ? `${number(change.evidence.before, 2)} → ${number(change.evidence.got, 2)}` : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function FirstSteps() {
  const origin = location.origin;
  return (
    <Card class="wide">
      <Empty title="No decisions yet. Add an item, ask for a ranking, send the reward:"
        command={`curl -X PUT ${origin}/v1/items/jazz-night -H 'Content-Type: application/json' \\
  -d '{"features": {"genre": "jazz", "energy": 0.4}, "tags": ["jazz"]}'
curl ${origin}/v1/rank -H 'Content-Type: application/json' -d '{"userId": "ada"}'
curl ${origin}/v1/events/EVENT_ID/reward -H 'Content-Type: application/json' -d '{"value": 1}'`}>
        <p>Or do it here: <a href="#/items">add an item</a>, then <a href="#/try">try it</a>. With simulated listeners: <code>codband serve --demo</code>.</p>
      </Empty>
    </Card>
  );
}

export function Overview(props: {query: URLSearchParams}) {
  const live = useLive();
  const wanted = props.query.get('range');
  const young = live && Date.parse(live.time) - Date.parse(live.start) < 15 * 60e3;
  const range: Range = isRange(wanted) ? wanted : young ? 'live' : 'hour';
  const {span, step} = kRanges[range === 'live' ? 'hour' : range];
  const now = Math.floor(Date.now() / 1000);
  const loaded = useLoad(`stats ${span}`, () =>
    get<Stats>(`/v1/stats?from=${now - span - (now % step)}&to=${Math.floor(Date.now() / 1000) + 60}&step=${step}`), 15000);
  const hour = useLoad('hour', () => get<Stats>(`/v1/stats?step=60`), 30000);
  if (!live) return <Failure error={loaded.error} />;
  const points = (loaded.value?.points ?? []).slice();
  // The minute that goes on is told live.
  if (live.point && step === 60) {
    if (points.at(-1)?.time === live.point.time) points.pop();
    points.push(live.point);
  }
  const {stats} = live;
  const shown = range === 'live' ? fromSeconds() : fromPoints(points, step);
  const uptime = (Date.parse(live.time) - Date.parse(live.start)) / 1000;
  const since = live.sinceStart;
  const nothing = stats.ranks === 0 && stats.users === 0 && points.length === 0;
  const times = points.map(point => Date.parse(point.time) / 1000);
  const changes = points.map(point => point.changes);
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        <p class="muted">
          {stats.lastError === '' ? <span class="state">ready</span> : <span class="state bad">not ready</span>}{' '}
          {stats.policy} · {live.mode || 'online'} · up {duration(uptime)}
        </p>
      </div>
      {nothing && <FirstSteps />}
      <dl class="tiles">
        <Tile label="Decisions" value={count(stats.ranks)} note={`${rate(seconds.map(second => second.live.stats.ranks))} per second`} />
        <Tile label="Rewards" value={count(stats.rewardsAccepted)} note={since.delaySeconds.mean === undefined ? 'none yet' : `after ${duration(since.delaySeconds.mean)} on average`} />
        <Tile label="Without a reward" value={count(stats.rewardsDefaulted)} note={`${count(stats.pending)} still waiting`} />
        <Tile label="Users" value={count(stats.users)} note={`in ${many(stats.models, 'group')}`} />
        <Tile label="Changes" value={count(stats.changesLastHour)} note="in the last hour" />
        <Tile label="On disk" value={bytes(stats.diskBytes)} note={many(stats.items, 'item')} />
        {since.compared > 0 && <Tile label="Agreement" value={percent(since.agreed / since.compared)} note="policy and baseline choose the same" />}
      </dl>
      <Failure error={loaded.error} />
      {!nothing && <Attention live={live} hour={hour.value} />}
      {!nothing && <RewardCard shown={shown} range={range} />}
      <div class="columns">
        <Card title="Groups over time" aside={<a href="#/groups">All groups</a>}>
          {points.some(point => point.groups.length > 0)
            ? <Stream times={times} groups={groupSizes(points)} summary={`Users of each group over time; now ${stats.models} groups`} />
            : <p class="muted pad">The first rewards make the first groups.</p>}
        </Card>
        <Card title="Changes over time">
          <Bars times={times} values={changes} unit="change" summary={`Changes over time, ${changes.reduce((a, b) => a + b, 0)} in all`} />
          <p class="hint">Detected changes of users, per {step === 60 ? 'minute' : duration(step)}.</p>
        </Card>
      </div>
      <Card title="Latest changes"><Changes live={live} most={8} /></Card>
    </>
  );
}

function rate(counts: number[]): string {
  const few = counts.slice(-11);
  return few.length < 2 ? '–' : number((few[few.length - 1] - few[0]) / (few.length - 1), 1);
}
