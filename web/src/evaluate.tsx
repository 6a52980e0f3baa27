// What other policies would have earned, from logged decisions.
import {useState} from 'preact/hooks';
import {get, upload, type EvaluationReply, type Logs} from './api';
import {Intervals} from './charts';
import {bytes, count, number} from './format';
import {Card, Code, Empty, Failure, Scroll, short, useLoad} from './ui';

// One colour for a policy, as in the reports.
const kPolicyColours: Record<string, string> = {logged: 'var(--fg)', first: 'var(--baseline)', uniform: 'var(--uniform)'};
export const policyColour = (name: string) =>
  name.startsWith('codband') ? 'var(--codband)' : kPolicyColours[name] ?? '#009e73';

function Result(props: {result: EvaluationReply}) {
  const {result} = props;
  const rows = result.policies.flatMap(policy => {
    const headline = policy.estimates.find(estimate => estimate.headline);
    return headline?.value === undefined ? [] : [{label: short(policy.name), colour: policyColour(policy.name), value: headline.value, low: headline.low, high: headline.high}];
  });
  const warnings = result.warnings.concat(result.policies.flatMap(policy => policy.warnings.map(warning => `${policy.name}: ${warning}`)));
  return (
    <>
      <Card class="wide"><p class="verdict big" role="status">{result.verdict}</p>
        <p class="hint pad">{count(result.events)} decisions of {count(result.users)} users among {count(result.actions)} actions{result.skippedLines > 0 ? `; ${count(result.skippedLines)} lines left out, the first: ${result.firstProblem}` : ''}.</p>
      </Card>
      <Card title="Mean reward per decision">
        <Intervals rows={rows} summary={rows.map(row => `${row.label} ${number(row.value)}`).join(', ')} />
        <p class="hint pad">Dots: the mean of the log, and doubly robust estimates of the other policies. Bars: {Math.round(100 * result.confidence)} % bootstrap intervals; an arrow marks one that continues beyond the chart.</p>
      </Card>
      {warnings.length > 0 && <Card title="Warnings"><ul class="concerns">{warnings.map(warning => <li key={warning}>{warning}</li>)}</ul></Card>}
      <Card title="All estimates">
        <Scroll label="All estimates">
          <table>
            <thead><tr><th>Policy</th><th>Estimator</th><th class="n">Value</th><th class="n">Bootstrap interval</th><th class="n">Guaranteed interval</th><th class="n">Effective events</th></tr></thead>
            <tbody>
              {result.policies.flatMap(policy => policy.estimates.map(estimate => (
                <tr key={policy.name + estimate.estimator} class={estimate.headline ? 'chosen' : ''}>
                  <td>{short(policy.name)}</td><td>{estimate.estimator}</td>
                  <td class="n">{number(estimate.value, 4)}</td>
                  <td class="n nowrap">{estimate.low === undefined ? '–' : `${number(estimate.low)} … ${number(estimate.high)}`}</td>
                  <td class="n nowrap">{estimate.guaranteedLow === undefined ? '–' : `${number(estimate.guaranteedLow)} … ${number(estimate.guaranteedHigh)}`}</td>
                  <td class="n">{count(policy.effectiveEvents)}</td>
                </tr>
              )))}
            </tbody>
          </table>
        </Scroll>
      </Card>
    </>
  );
}

export function Evaluate() {
  const {value: logs, error: unlisted} = useLoad('logs', () => get<Logs>('/v1/logs'));
  const [log, setLog] = useState('all');
  const [file, setFile] = useState<File | null>(null);
  const [policies, setPolicies] = useState('logged,first,uniform,codband');
  const [result, setResult] = useState<EvaluationReply>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const run = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    const query = new URLSearchParams({policies});
    if (!file) query.set('log', log);
    else if (file.name.endsWith('.csv')) query.set('input', 'csv');
    try {
      setResult(await upload<EvaluationReply>(`/v1/evaluate?${query}`, file ?? new Blob()));
    } catch (failure) {
      setResult(undefined);
      setError(failure);
    }
    setBusy(false);
  };
  const none = logs && logs.logs.length === 0;
  return (
    <>
      <div class="title"><h1>Evaluate</h1><p class="muted">What would other policies have earned on the decisions that were made?</p></div>
      <Card>
        <form class="form" onSubmit={run}>
          <div class="columns">
            <label>Decision log of this server
              <select value={log} onChange={event => setLog(event.currentTarget.value)} disabled={!!none || !!file}>
                <option value="all">{none ? 'none' : 'all files'}</option>
                {logs?.logs.map(each => <option key={each.name} value={each.name}>{each.name}, {bytes(each.bytes)}</option>)}
              </select>
            </label>
            <label>or a file: DSJSON lines or CSV <input type="file" onChange={event => setFile(event.currentTarget.files?.[0] ?? null)} /></label>
          </div>
          <label>Policies <input value={policies} onInput={event => setPolicies(event.currentTarget.value)} spellcheck={false} required /></label>
          <div class="row"><button type="submit" class="primary" disabled={busy || (!!none && !file)}>{busy ? 'Evaluating …' : 'Evaluate'}</button></div>
        </form>
        {none && !file && <Empty title={logs.enabled ? 'The decision log is empty: a decision is in it once its reward has come.' : 'This server keeps no decision log. Give it a directory for one:'} command={logs.enabled ? undefined : 'codband serve --data my-data --set decision_log.directory=my-log'} />}
        <Failure error={unlisted ?? error} />
      </Card>
      {result && <Result result={result} />}
      {result && <Card title="The same on the command line"><Code label="Command" text={`codband evaluate --log ${file ? file.name : 'my-log'} --policies ${policies}`} /></Card>}
    </>
  );
}
