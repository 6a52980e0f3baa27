// A request by hand: what comes back, why, and the code for it.
import {useState} from 'preact/hooks';
import {ApiError, id, post, type RankReply, type Session} from './api';
import {snippets, type Request} from './snippets';
import {Card, Code, Failure, short} from './ui';
import {Explanation, Ranking} from './user';

function parts(user: string, context: string, actions: string, top: string): Request {
  const body: Request = {};
  if (user) body.userId = user;
  if (context.trim()) {
    try {
      body.contextFeatures = JSON.parse(context);
    } catch {
      throw new ApiError(0, 'Context: expected JSON, such as {"device": "phone"}.');
    }
  }
  const ids = actions.split('\n').map(line => line.trim()).filter(line => line !== '');
  if (ids.length > 0) body.actions = ids;
  if (top) body.topK = Number(top);
  return body;
}

export function TryIt(props: {query: URLSearchParams; session: Session}) {
  const [user, setUser] = useState(props.query.get('user') ?? '');
  const [context, setContext] = useState(props.query.get('context') ?? '');
  const [actions, setActions] = useState(props.query.get('actions') ?? '');
  const [top, setTop] = useState('8');
  const [reward, setReward] = useState('1');
  const [reply, setReply] = useState<RankReply>();
  const [sent, setSent] = useState('');
  const [error, setError] = useState<unknown>();
  const [tab, setTab] = useState<'curl' | 'Python' | 'JavaScript'>('curl');
  const rank = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    setSent('');
    try {
      // Nothing is learned of it unless a reward is sent.
      setReply(await post<RankReply>('/v1/rank?explain=true', {...parts(user, context, actions, top), deferActivation: true}));
    } catch (failure) {
      setReply(undefined);
      setError(failure);
    }
  };
  const send = async () => {
    setError(undefined);
    try {
      await post(`/v1/events/${id(reply!.eventId)}/activate`, {});
      const answer = await post<{status: string}>(`/v1/events/${id(reply!.eventId)}/reward`, {value: Number(reward)});
      setSent(`Reward ${reward}: ${answer.status}.`);
    } catch (failure) {
      setError(failure);
    }
  };
  let code: ReturnType<typeof snippets> | undefined;
  try {
    code = snippets(location.origin, parts(user, context, actions, top), Number(reward || '1'), !!props.session.keyRequired);
  } catch {
    // While JSON is being typed it is not JSON.
  }
  return (
    <>
      <div class="title"><h1>Try it</h1><p class="muted">Nothing is learned from a try unless you send its reward.</p></div>
      <div class="columns">
        <Card title="Request">
          <form class="form" onSubmit={rank}>
            <label>User id <input value={user} onInput={event => setUser(event.currentTarget.value)} autocomplete="off" placeholder="an anonymous visitor" /></label>
            <label>Context, as JSON <textarea rows={3} spellcheck={false} value={context} onInput={event => setContext(event.currentTarget.value)} placeholder='{"device": "phone"}' /></label>
            <label>Candidates, one id per line <textarea rows={3} spellcheck={false} value={actions} onInput={event => setActions(event.currentTarget.value)} placeholder="the whole catalogue" /></label>
            <label>Length of the ranking <input type="number" min={1} max={100} value={top} onInput={event => setTop(event.currentTarget.value)} /></label>
            <div class="row"><button type="submit" class="primary">Rank</button></div>
          </form>
          <Failure error={error} />
        </Card>
        <Card title="Reply">
          {!reply ? <p class="muted pad">Press Rank to see the choice and the reasons for it here, and the ranking below.</p> : (
            <div class="pad">
              <p>Show <b dir="auto">{short(reply.rewardActionId)}</b>. <span class="muted">Event {short(reply.eventId)}</span></p>
              <form class="row" onSubmit={event => {
                event.preventDefault();
                void send();
              }}>
                <label>Reward <input type="number" step="any" value={reward} onInput={event => setReward(event.currentTarget.value)} required /></label>
                <button type="submit" disabled={sent !== ''}>Send reward</button>
              </form>
              <p role="status">{sent}</p>
              <Explanation reply={reply} />
            </div>
          )}
        </Card>
      </div>
      {reply && <Card title="Ranking"><Ranking reply={reply} /></Card>}
      <Card title="The same request from your code" aside={<div class="tabs" role="group" aria-label="Language">{(['curl', 'Python', 'JavaScript'] as const).map(name => <button type="button" key={name} aria-pressed={name === tab} onClick={() => setTab(name)}>{name}</button>)}</div>}>
        {code && <Code text={code[tab]} label={`${tab} for this request`} />}
      </Card>
    </>
  );
}
